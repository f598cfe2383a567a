"""A Django project in one file: a blocking view and an asynchronous one."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from shop import both, send

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="for the proof only", DEBUG=False)


def blocking(request: HttpRequest) -> HttpResponse:
    return HttpResponse(both("django"))


async def asynchronous(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"{os.getpid()} {(await send.submit(to='django')).id}")


urlpatterns = [path("sync", blocking), path("async", asynchronous)]
application = get_wsgi_application()
