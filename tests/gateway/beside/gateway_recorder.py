"""Writes down what a spend log would hold: one line for each call that litellm logs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from litellm.integrations.custom_logger import CustomLogger


class Recorder(CustomLogger):
    async def async_log_success_event(
        self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        logged = kwargs.get("standard_logging_object") or {}
        metadata = (kwargs.get("litellm_params") or {}).get("metadata") or {}
        line = {
            "model_group": logged.get("model_group"),
            "key": metadata.get("user_api_key_alias"),
            "team": metadata.get("user_api_key_team_id"),
            "hash": metadata.get("user_api_key"),
            "looked_into": "compacter_call" in metadata,
            "tags": logged.get("request_tags"),
            "marked": metadata.get("spend_logs_metadata"),
            "cost": logged.get("response_cost"),
        }
        with Path(os.environ["GATEWAY_RECORD"]).open("a") as file:  # noqa: ASYNC230 - a line
            file.write(json.dumps(line) + "\n")


recorder = Recorder()
