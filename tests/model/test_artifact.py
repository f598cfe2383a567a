"""Names and types of artifacts: a name that leads outside the folder is refused."""

import pytest

from horae.errors import BadInput
from horae.model.executions.output.artifact import RESULT, check_name, check_type


@pytest.mark.parametrize("name", ["report.html", "plots/daily report.png", "ünï", ".hidden", "a" * 255, RESULT])
def test_a_path_below_a_folder_is_a_name(name: str):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "/etc/passwd", "a//b", "../a", "a/../b", ".", "a/.", "a\\b", "a\nb", "a\0", "b" * 256, ":mine", "a/"]
)
def test_paths_outside_the_folder_are_refused(name: str):
    with pytest.raises(BadInput) as refused:
        check_name(name)
    assert refused.value.fields["field"] == "name"
    assert refused.value.remedy


@pytest.mark.parametrize("type", ["text/plain", "application/vnd.a+json", "text/html; charset=utf-8"])
def test_media_types(type: str):
    assert check_type(type) == type


@pytest.mark.parametrize("type", ["", "text", "text/html\r\nx: y", "text/html; <script>", "a" * 300 + "/b"])
def test_an_invalid_media_type_is_refused(type: str):
    with pytest.raises(BadInput):
        check_type(type)
