# Written by docs/stubs.py.
from pathlines.transport import euclid as euclid
from pathlines.transport import schedule as schedule
from pathlines.transport.schedule import PieceSchedule as PieceSchedule
from pathlines.transport.schedule import check_count as check_count
from pathlines.transport.schedule import piece_field as piece_field
from pathlines.transport.schedule import read_schedule as read_schedule
from pathlines.transport.schedule import schedule_from_json as schedule_from_json
