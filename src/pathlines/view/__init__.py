"""Runs as pages: frames for the player, files to send, notebooks."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
