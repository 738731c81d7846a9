"""What the server answers reaches the page, in whatever order its parts arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.ui.waits import expect

LATE_RECEIPTS = """{
  const { fetch } = window;
  const told = new Set();
  let streams = 0, opening = false, wake = () => {}, changed;
  const again = () => { wake(); changed = new Promise((done) => { wake = done; }); };
  again();
  const listen = async (body) => {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; ; ) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (done) break;
      const messages = (text += value).split('\\n\\n');
      text = messages.pop();
      for (const message of messages) {
        const { msg, event_id: id } = JSON.parse(message.replace(/^data: */, ''));
        if (msg === 'process_completed') told.add(id);
      }
      again();
    }
    streams -= 1;
    again();
  };
  window.fetch = async (target, options) => {
    const url = String(target?.url ?? target);
    if (url.includes('/queue/data')) {
      streams += 1;
      opening = false;
      const answer = await fetch(target, options);
      const [theirs, ours] = answer.body.tee();
      listen(ours);
      return new Response(theirs, answer);
    }
    const answer = await fetch(target, options);
    if (url.includes('/queue/join')) {
      const { event_id: id } = await answer.clone().json();
      if (!streams && !opening) opening = true;
      else while (!told.has(id) && (streams || opening)) await changed;
    }
    return answer;
  };
}"""
"""The receipt of a question arrives after its answer, wherever a stream of answers is open that can bring it."""


@pytest.mark.slow
@pytest.mark.browser
def test_an_answer_that_comes_before_its_receipt_is_shown_whole(
    visit: Callable[..., Any], app_url: str
) -> None:
    page = visit(app_url, script=LATE_RECEIPTS)
    for name in ("tower", "cheetah"):
        page.get_by_role("button", name=f"Sample image {name}").click()
        chosen = page.locator(f'#vv-samples [aria-label="Sample image {name}"]')
        expect(chosen).to_have_attribute("aria-pressed", "true")
