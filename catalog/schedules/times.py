"""Due times of schedules: cron expressions in a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from gcvae.errors import InputError, Problem
from gcvae.schema.suggestions import unknown_name

_FIELDS = 5
_EXPECTED = "minute, hour, day of month, month and day of week, such as 0 6 * * MON-FRI"
_MOST_MISSED = 10_000


class ScheduleError(InputError):
    """Raised if a cron expression or the name of a time zone is invalid."""


@dataclass(frozen=True)
class Times:
    """Due times of a schedule: a cron expression in a time zone. Times are returned in UTC.

    Changes to and from daylight saving time are treated as in Debian's cron. A daily time within
    the skipped hour is due at the end of that hour; a daily time within the repeated hour is due
    once. Expressions that are due every hour, or more often, are not affected.

    `checked_times` validates expressions of users and creates instances.
    """

    cron: str
    time_zone: str

    def after(self, time: datetime) -> datetime:
        """Returns the first due time after `time`."""
        return next(self._from(time))

    def latest(self, time: datetime) -> datetime:
        """Returns the last due time that is not after `time`."""
        return next(self._from(time + timedelta(microseconds=1), reverse=True))

    def count(self, first: datetime, end: datetime) -> int:
        """Returns the number of due times from `first` up to, but excluding, `end`.

        `first` must be a due time. At most 10,000 are counted.
        """
        times = takewhile(lambda time: time < end, self._from(first))
        return 0 if first >= end else 1 + sum(1 for _ in islice(times, _MOST_MISSED - 1))

    def _from(self, time: datetime, *, reverse: bool = False) -> Iterator[datetime]:
        zoned = time.astimezone(ZoneInfo(self.time_zone))
        return (found.astimezone(UTC) for found in CronSim(self.cron, zoned, reverse=reverse))


def checked_times(cron: str, time_zone: str) -> Times:
    """Returns the due times of a cron expression in a time zone.

    Raises:
        ScheduleError: The expression or the time zone is invalid, or there is no due time.
    """
    if time_zone not in (known := available_timezones()):
        message = f"there is no time zone {time_zone!r}"
        raise ScheduleError(unknown_name(message, time_zone, sorted(known), pointer="/time_zone"))
    times = Times(cron, time_zone)
    try:
        if len(cron.split()) != _FIELDS:
            raise CronSimError("it does not have five fields")
        times.after(datetime.now(UTC))
    except (CronSimError, StopIteration, RuntimeError) as error:
        why = str(error) if isinstance(error, CronSimError) else "no date fits it"
        message = f"{cron!r} is not a cron expression: {why[0].lower()}{why[1:]}"
        raise ScheduleError(Problem(message, "/cron", expected=_EXPECTED)) from None
    return times
