"""Who one is: browsers sign in with a single-use code and sign out; every credential can ask."""

from horae.env import SECOND
from horae.errors import Unauthorized
from horae.server.auth import cookie_of, set_cookie
from horae.server.bodies import Code
from horae.server.call import Call
from horae.server.reply import UNCACHED, Reply, nothing, ok
from horae.server.route import API, get, post
from horae.server.views import Me


@post(f"{API}/sign-in", "me.sign-in", Me, repeats="by itself", refuses=(Unauthorized,))
async def sign_in(call: Call, body: Code) -> Reply:
    """Exchange the code of a sign-in link for a cookie.

    The code works once. Writes with the cookie must carry `csrf` as the header X-CSRF-Token.
    """
    signed = await call.node.keys.sign_in(body.code)
    seconds = (signed.until - call.node.env.now()) // SECOND
    reply = ok(Me.of(signed.who))
    reply.headers = (UNCACHED, set_cookie(signed.cookie, seconds, secure=call.secure))
    return reply


@post(f"{API}/sign-out", "me.sign-out", status=204, repeats="by itself")
async def sign_out(call: Call) -> Reply:
    """End this browser's sign-in."""
    cookie = cookie_of(call.headers)
    if cookie is not None:
        await call.node.keys.sign_out(cookie)
    reply = nothing()
    reply.headers = (UNCACHED, set_cookie("", 0, secure=call.secure))
    return reply


@get(f"{API}/me", "me.get", Me)
async def get_me(call: Call) -> Reply:
    """Tell who this credential is."""
    return ok(Me.of(call.who))
