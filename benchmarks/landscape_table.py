"""The table of one run of ``landscape_speed.py``."""

from __future__ import annotations


def gib(number) -> str:
    return f"{number / 2**30:.2f} GiB"


def table(r: dict) -> str:
    """Markdown table of one run."""
    m, ours, peer, same = r["machine"], r["ours"], r.get("peer"), r.get("same_sample")
    memory = f", {m['memory_gib']:g} GiB" if m["memory_gib"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in r["versions"].items())
    device = "" if m["platform"] == "cpu" else f"; device: {m['device']}"
    rows = [
        (
            "Speed, both sides certified, compiled",
            f"**{ours['per_second']:.0f} settings/s** ({ours['number']} settings)",
        )
    ]
    if peer:
        rate = 1.0 / peer["mean_seconds"]
        rows += [
            (
                "gdpnum",
                (
                    f"{rate:.2f} settings/s (mean {peer['mean_seconds']:.2f} s, median"
                    f" {peer['median_seconds']:.2f} s)"
                ),
            ),
            (
                "Ratio",
                f"**{same['per_second'] / rate:.0f}×** on the same {peer['number']} settings",
            ),
        ]
    rows += [
        (
            "First call, compilation included",
            (
                f"{ours['cold_seconds']:.1f} s for {ours['number']} settings; compiling"
                f" {ours['programs']} programs took {ours['compile_seconds']:.1f} s of it"
            ),
        ),
        (
            "Relative width of the μ bracket",
            (
                f"median {ours['median_width']:.1e}, largest {ours['largest_width']:.1e};"
                f" {ours['wider_than_rtol']} of {ours['number']} wider than `rtol` = {r['rtol']:g}"
                " (flagged)"
            ),
        ),
    ]
    if peer:
        outside = peer["below_bracket"] + peer["above_bracket"]
        rows.append(
            (
                "gdpnum's μ",
                (
                    f"crashes on {peer['crashes']} of {peer['number']}; outside our bracket on"
                    f" {outside} ({peer['below_bracket']} too small, by up to"
                    f" {100 * peer['largest_under_report']:.2g} %; {peer['above_bracket']} too"
                    f" large, by up to {100 * peer['largest_over_report']:.2g} %)"
                ),
            )
        )
    usage = gib(ours["peak_memory"])
    if ours["device_memory"]:
        usage += f", on the device {gib(ours['device_memory'])}"
    rows.append(("Peak memory", usage + (f"; gdpnum {gib(peer['peak_memory'])}" if peer else "")))
    if (cli := r.get("landscape")) is not None:
        text = f"{cli['seconds']:.1f} s" if cli["seconds"] else f"failed: {cli['error']}"
        if peer:
            text += (
                f"; gdpnum would need {100 * peer['mean_seconds']:.0f} s for 100 of its 1,536"
                " settings"
            )
        rows.append(("Cold `jaxgdp landscape`, files written", text))
    f, number, seconds = r["ffts"], ours["number"], ours["warm_seconds"]
    rows.append(
        (
            "Cost against the bare FFTs of a dense method",
            (
                f"{seconds / f['seconds']:.1f}× of those on the lattices used"
                f" ({1e3 * seconds / number:.2f} ms a setting, the FFTs"
                f" {1e3 * f['seconds'] / number:.2f} ms), {seconds / f['seconds_fewest']:.1f}× of"
                " those on lattices with a quarter of the points"
            ),
        )
    )
    each = (
        f"T = {s['num_steps']:,}: {1e3 * s['seconds'] / s['number']:.2f} ms (N ="
        f" {s['lattice']:.0f})"
        for s in r["steps"]
    )
    rows.append(("Cost against T (σ ≈ 5, p = 0.01)", "; ".join(each)))
    each = (
        f"{s['number']}: {1e3 * s['seconds']:.0f} ms ({1e3 * s['seconds'] / s['number']:.2f} each)"
        for s in r["batches"]
    )
    rows.append(("Cost against batch size", "; ".join(each)))
    lines = [
        (
            f"{m['cpu']}, {m['cores']} cores{memory}{device}; {versions}; {r['date']}; `rtol` ="
            f" {r['rtol']:g}, FPR floor {r['fpr_floor']:g}; random settings of the Figure 3 grid,"
            f" seed {r['seed']}."
        ),
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in rows),
    ]
    return "\n".join(lines) + "\n"
