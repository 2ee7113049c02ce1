"""Run replays: which ones, on which processes, with their results kept and summed up.

`request.py` reads what to replay, `fit_checks.py` rejects what fits nowhere, and `run.py` plays it
here, `dask_cluster.py` elsewhere; `replay.py` is the one call into the engine. `measures.py` has
the figures, `summary.py` sums them up, and `survey.py` describes a trace before. `rehearsal.py`
plays a booked day, `seated_days.py` with servers started before it; `verdict.py` plays a
hub's past (`rehearse --past`) and says whether Roost helps. `recording.py` writes a replay as a
record.
"""
