"""The status of one calibration."""

OK, WIDE, OPEN, EVERY, NONE = range(5)
STATUS = {
    OK: "ok: the value meets the target, and one step of rtol towards less privacy does not",
    WIDE: ("ok, but the brackets are wider than rtol: the value is safe, and less noise may do"),
    OPEN: "the value meets the target, but what was rejected is more than one step of rtol away",
    EVERY: "every parameter meets the target, or every one up to the end of the search, the value",
    NONE: "no parameter meets the target up to the end of the search, which was rejected",
}
