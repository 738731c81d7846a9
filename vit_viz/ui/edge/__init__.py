"""What stands between strangers and the app: everything that comes in over HTTP passes through here.

addresses.py      which addresses there are; all others answer 404
exposure.py       under which host names the app is served, and which headers of a proxy are trusted
headers.py        the security headers of every answer, and the policy of the page
documents.py      the page as HTML, made once and sent to everybody
page_parts.py     what is large in it, in a script that browsers keep
pages.py          the pages that visitors have open, a bounded number for each
admission.py      how many questions may wait for an answer, shared fairly
upload_files.py   files on disk from their first byte until they are read
uploading.py      an upload and its progress
tending.py        housekeeping: abandoned questions end, expired files are deleted
refusals.py       what goes wrong behind the guard -> one sentence and a status
http_guard.py     the middleware in front of Gradio that applies all of these
guarding.py       how the app comes behind it
image_input.py    the image component, which accepts only files that its visitor uploaded
user_errors.py    exceptions -> one escaped sentence
request_log.py    log lines that carry the number of their request
"""
