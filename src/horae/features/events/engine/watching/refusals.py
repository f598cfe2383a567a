"""Readable errors of object stores: their answers are XML or JSON, to which the client library adds its own report."""

import re

from horae.errors import BadInput

MOST_ANSWER = 300
_CODE = re.compile(r"<Code>([^<]{1,80})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]{1,200})</Message>|\"message\":\s*\"([^\"]{1,200})\"")
_STATUS = re.compile(r"status code: (\d{3} [A-Za-z ]{1,40})")
_HOST = re.compile(r"performing [A-Z]+ (https?://[^/\s]{1,200})")
_KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or GOOGLE_APPLICATION_CREDENTIALS"
_METADATA = ("169.254.169.254", "metadata.google.internal")  # the sources of a cloud machine's credentials


def in_words(error: Exception, bucket: str) -> BadInput:
    """Return the reason why a bucket could not be listed, with a remedy, without the client library's report."""
    text = str(error).partition("\n\nDebug source:")[0]
    if any(place in text for place in _METADATA):
        return BadInput("This server has no credentials for object stores.", f"Set {_KEYS} in its environment.")
    said = _answer_of(text)
    if said.startswith(("NoSuchBucket", "404")):
        return BadInput(f'There is no bucket "{bucket}": {said}.', "Check its name, and AWS_ENDPOINT_URL.")
    if "AccessDenied" in said or said.startswith(("403", "401", "Invalid", "Signature")):
        remedy = f"Check {_KEYS} of this server, and that they may list the bucket."
        return BadInput(f'The bucket "{bucket}" may not be listed: {said}.', remedy)
    asked = _HOST.search(text)
    where = f" at {asked[1]}" if asked else ""
    return BadInput(f'The bucket "{bucket}" cannot be listed{where}: {said}.', "Check the endpoint and the network.")


def _answer_of(text: str) -> str:
    """Return the code and message of the store's answer.

    Without code and message, return the HTTP status; without a status, the error of the request.
    """
    code, message, status = _CODE.search(text), _MESSAGE.search(text), _STATUS.search(text)
    parts = [code and code[1], message and (message[1] or message[2])]
    answer = ": ".join(part for part in parts if part) or (status[1].strip() if status else text.rpartition(" - ")[2])
    return " ".join(answer.split())[:MOST_ANSWER].rstrip(".")
