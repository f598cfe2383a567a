"""Send tasks to the Celery worker and print their answers."""

from celery_app import submit

for answer in [submit.delay(str(n)) for n in range(20)]:
    print(answer.get(timeout=90))
