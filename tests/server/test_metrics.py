"""What a server counts of its own answers."""

from prometheus_client import CollectorRegistry, generate_latest

from horae.server.metrics import Answers


def test_answers_are_counted_by_route_and_status_and_timed_by_route():
    answers, registry = Answers(), CollectorRegistry()
    registry.register(answers)
    for status, seconds in ((200, 0.001), (200, 0.0015), (404, 30.0)):
        answers.add("jobs.get", status, seconds)

    lines = generate_latest(registry).decode().splitlines()

    assert 'horae_http_requests_total{route="jobs.get",status="200"} 2.0' in lines
    assert 'horae_http_requests_total{route="jobs.get",status="404"} 1.0' in lines
    for bound, count in (("0.001", 1), ("0.002", 2), ("10.0", 2), ("+Inf", 3)):
        assert f'horae_http_request_seconds_bucket{{le="{bound}",route="jobs.get"}} {count}.0' in lines
    assert 'horae_http_request_seconds_count{route="jobs.get"} 3.0' in lines
    assert 'horae_http_request_seconds_sum{route="jobs.get"} 30.0025' in lines
