import numpy as np
import pytest

from benchmarks import temperatures


def series(tmp_path, text):
    path = tmp_path / "series.csv"
    path.write_text(text, encoding="utf-8")
    (found,) = temperatures.read(path)
    return found


def test_new_york_has_three_airports_and_a_year():
    places = temperatures.read()
    assert len(places) == 3
    assert all(8700 < len(place) <= 8760 for place in places)
    assert all(np.isfinite(place).all() for place in places)


def test_gaps_are_filled_in_linearly(tmp_path):
    text = "hour,temp\n2020-01-01 00:00,1\n2020-01-01 01:00,\n2020-01-01 02:00,NA\n"
    text += "2020-01-01 04:00,9\n"
    np.testing.assert_allclose(series(tmp_path, text), [1, 3, 5, 7, 9])


def test_noaas_climatological_data(tmp_path):
    text = "STATION,DATE,HourlyDryBulbTemperature,HourlyWindSpeed\n"
    text += "1,2020-01-01T00:53:00,31s,1\n1,2020-01-01T01:53:00,,2\n1,2020-01-01T02:53:00,35,3\n"
    np.testing.assert_allclose(series(tmp_path, text), [31, 33, 35])


def test_noaas_global_hourly_data(tmp_path):
    text = '"STATION","DATE","TMP"\n"1","2020-01-01T00:00:00","-0011,1"\n'
    text += '"1","2020-01-01T01:00:00","+9999,9"\n"1","2020-01-01T02:00:00","+0011,5"\n'
    text += '"1","2020-01-01T02:30:00","+0999,3"\n'
    np.testing.assert_allclose(series(tmp_path, text), [-1.1, 0.0, 1.1])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b,c\n1,2,3\n", "has the columns a, b, c: give two"),
        ("hour,temp\n", "has no temperatures"),
        ("hour,temp\nnoon,3\n", "line 2: 'noon' is not a time"),
    ],
)
def test_a_file_that_is_no_series_is_told(tmp_path, text, problem):
    with pytest.raises(ValueError, match=problem):
        series(tmp_path, text)
