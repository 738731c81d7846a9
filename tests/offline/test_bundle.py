"""Modules as one script: the same names, in an order in which each finds what it imports, or a refusal."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import vit_viz
from vit_viz.offline import bundle
from vit_viz.offline.bundle import bundled, squeezed, together
from vit_viz.offline.stylesheet import bare

PACKAGE = Path(vit_viz.__file__).parent


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of a few modules instead of ours."""
    monkeypatch.setattr(bundle, "_PACKAGE", tmp_path)
    monkeypatch.setattr(bundle, "_text", lambda name: (tmp_path / name).read_text())
    (tmp_path / "part").mkdir()
    return tmp_path


def run(script: str) -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node.js is not installed")
    done = subprocess.run([node, "-e", script], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_a_bundle_does_what_its_modules_do(package: Path) -> None:
    (package / "part" / "numbers.js").write_text(
        "let made = 0;\n\n/** Counts. */\nexport function next() {\n  return (made += 1);\n}\nexport const TEN = 10;\n"
        "export class Pair {\n  sum = TEN + next();\n}\nexport async function later() {}\n"
    )
    (package / "between.js").write_text(
        "import { TEN, next } from './part/numbers.js';\n\nconst $=TEN;export{$ as TEN,next};\n"
    )
    (package / "other.js").write_text(
        "import { next } from './part/numbers.js';\n\nexport const first = next();\n"
    )
    (package / "main.js").write_text(
        "import {\n  Pair,\n  next as following,\n} from './part/numbers.js';\nimport { TEN } from './between.js';\n"
        "import { first } from './other.js';\n\n"
        "const made = 'hidden from numbers.js';\nexport function start() {\n"
        "  return [first, new Pair().sum, following(), made.length, TEN];\n}\n"
    )
    script = bundled("main.js", "console.log(JSON.stringify(entry.start()), Object.keys(entry).join());")
    assert run(script) == "[1,12,3,22,10] start"


@pytest.mark.parametrize(
    "line",
    [
        "export default 1;",
        "export { a } from './x.js';",
        "export let a = 1;",
        "export const { a } = { a: 1 };",
        "import all from './x.js';",
        "import * as all from './x.js';",
        "import './x.js';",
        "import { a } from 'elsewhere';",
        "  export const a = 1;",
        "const a = 1;export{a as b};a;",
    ],
)
def test_what_cannot_be_bundled_soundly_is_refused(package: Path, line: str) -> None:
    (package / "x.js").write_text("export const a = 1;\n")
    (package / "main.js").write_text(f"const b = 1;\n{line}\n")
    with pytest.raises(ValueError, match=r"main\.js cannot be bundled because of"):
        bundled("main.js", "")


def test_a_module_runs_when_it_is_first_needed_and_once(package: Path) -> None:
    (package / "a.js").write_text("console.log('a');\nexport const a = 1;\n")
    (package / "b.js").write_text(
        "import { a } from './a.js';\n\nconsole.log('b');\nexport const b = a + 1;\n"
    )
    (package / "c.js").write_text("console.log('c');\n")
    script = (
        together("a.js", "b.js", "c.js")
        + "console.log('begins'); console.log(need('b.js').b, need('b.js').b);"
    )
    assert run(script).split("\n") == ["begins", "a", "b", "2 2"]


def test_a_module_that_is_left_out_exports_nothing_and_takes_along_what_only_it_imports(
    package: Path,
) -> None:
    (package / "b.js").write_text("export const b = 1;\n")
    (package / "a.js").write_text("import { b } from './b.js';\n\nexport const a = b;\n")
    (package / "main.js").write_text("import { a } from './a.js';\n\nexport const start = () => a;\n")
    script = bundled("main.js", "console.log(entry.start());", without=["a.js"])
    assert "b.js" not in script
    assert run(script) == "undefined"


def test_modules_are_strict(package: Path) -> None:
    (package / "main.js").write_text("export function start() {\n  return this === undefined;\n}\n")
    assert run(bundled("main.js", "const { start } = entry; console.log(start());")) == "true"


SIGNS = r"""
// don't keep `this
const half = 4 /* nor this ' */ / 2 / 1; /** nor ${this} */
const words = `one ${[1, 2].map((n) => `${n}, // kept ${'}`'} /* kept */`).join(' ')}  two
    three \` ${{ half }.half} $`;
const found = "a / b".replace(/[/'"`]\/?/g, '-') + ' // kept';
const list = () => {
  return /\d+ {2}/.test('12  3')
    ? [half + +1, half - -1, half / half / half]
    : [];
}
let count = 1
count++
const box = { half }
console.log(JSON.stringify([half, words.replace(/\s+/g, ' '), found, list(), count, box.half / 1, typeof /x/, "//"]))
"""


def test_a_squeezed_script_says_the_same() -> None:
    short = squeezed(SIGNS)
    assert run(short) == run(SIGNS)
    assert "this" not in short
    assert len(short) < 0.8 * len(SIGNS)


@pytest.mark.parametrize("text", ["const a = `${1}", "const a = /[/;", "const a = {`"])
def test_a_script_that_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not end"):
        squeezed(text)


def test_every_module_is_the_same_squeezed_to_a_program_that_reads_javascript() -> None:
    if shutil.which("node") is None or not (PACKAGE.parent / "node_modules" / "esbuild").exists():
        pytest.skip("Node.js with the packages of package.json is not installed")
    names = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.js")]
    texts = [(PACKAGE / name).read_text("utf-8") for name in names]
    short = [squeezed(text) for text in texts]
    assert sum(map(len, short)) < 0.62 * sum(map(len, texts))
    program = (
        "const { transformSync } = require('esbuild');"
        "const pairs = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "const how = { minifyWhitespace: true, legalComments: 'none' };"
        r"const code = (text) => transformSync(text, how).code.replace(/\n[ \t]+/g, '\n');"  # margins of templates
        "console.log(JSON.stringify(pairs.map((pair) => code(pair[0]) === code(pair[1]))));"
    )
    pairs = json.dumps(list(zip(texts, short, strict=True)))
    asked = ["node", "-e", program]
    done = subprocess.run(
        asked, input=pairs, cwd=PACKAGE.parent, capture_output=True, text=True, check=True, timeout=60
    )
    assert [name for name, is_same in zip(names, json.loads(done.stdout), strict=True) if not is_same] == []


def test_modules_that_import_each_other_are_refused(package: Path) -> None:
    (package / "a.js").write_text("import { b } from './b.js';\nexport const a = () => b;\n")
    (package / "b.js").write_text("import { a } from './a.js';\nexport const b = () => a;\n")
    with pytest.raises(ValueError, match="import each other"):
        bundled("a.js", "")


@pytest.mark.parametrize("text", ["</script>", "</SCRIPT >", "<!--"])
def test_a_script_that_a_page_would_cut_off_is_refused(package: Path, text: str) -> None:
    (package / "main.js").write_text(f"export const a = '{text}';\n")
    with pytest.raises(ValueError, match="cannot hold"):
        bundled("main.js", "")


def test_the_page_is_bundled_with_all_that_it_imports_and_nothing_else() -> None:
    names = re.findall(r'^"([^"]+)": [(]', bundled("offline/page.js", ""), re.MULTILINE)
    assert names[-1] == "offline/page.js"
    assert {"explorer/explorer.js", "explorer/packed.js", "web/page/tabs.js"} <= set(names)
    assert not {"web/kit/server.js", "web/header/header.js"} & set(names)


def test_rules_lose_comments_and_white_space_that_means_nothing() -> None:
    rules = "/* said */\n.a,\n.b {\n  color: red;\n  font:\n    1px / 2px a,\n    b;\n  &:hover > i {\n    margin: 0;\n  }\n}\n"
    assert bare(rules) == ".a,.b{color:red;font:\n1px / 2px a,b;&:hover > i{margin:0;}}"
