"""What management controllers and health checks report without an incident, in ipmitool's and NHC's words."""

from __future__ import annotations

import random

from flows.replay.noise_chatter import Episode

MODULES = ("CPU1_DIMM_A1", "CPU1_DIMM_D1", "CPU1_DIMM_G1", "CPU2_DIMM_A1", "CPU2_DIMM_C1", "CPU2_DIMM_H1")


CHECKS = (
    "check_ps_service:  Service chronyd (process chronyd) owned by chrony not running; start in progress",
    "check_ps_service:  Service sshd (process sshd) owned by root not running; start in progress",
    "check_hw_mcelog:  MCEs detected - 12 corrected memory errors detected (limit of 9/day).",
    "check_hw_physmem_free:  Not enough RAM free (1048212 kB < 2097152 kB).",
    "check_hw_swap_free:  Not enough swap free (0 kB < 1048576 kB).",
    "check_fs_used:  /var has exceeded the maximum used space (92% >= 90%).",
)
"""Checks that fail without a fault of a part: check, what it says."""


def _input_blinks(rng: random.Random) -> Episode:
    sensor = f"Power Supply PSU{rng.randint(1, 6)} Status"
    back = rng.randint(2, 14)
    if rng.random() < 0.7:
        return [
            (0, f"{sensor} | Power Supply AC lost | Asserted"),
            (back, f"{sensor} | Power Supply AC lost | Deasserted"),
        ]
    return [
        (0, f"{sensor} | Failure detected | Asserted"),
        (1, "Power Unit PSU Redundancy | Redundancy Lost | Asserted"),
        (back + 1, f"{sensor} | Failure detected | Deasserted"),
        (back + 2, "Power Unit PSU Redundancy | Fully Redundant | Asserted"),
    ]


def _door(rng: random.Random) -> Episode:
    sensor = "Physical Security Chassis Intru | General Chassis intrusion"
    return [(0, f"{sensor} | Asserted"), (rng.randint(60, 4000), f"{sensor} | Deasserted")]


def _corrected(rng: random.Random) -> Episode:
    return [(0, f"Memory {rng.choice(MODULES)} | Correctable ECC | Asserted")]


def _cleared(_: random.Random) -> Episode:
    return [(0, "Event Logging Disabled SEL | Log area reset/cleared | Asserted")]


def _clock(_: random.Random) -> Episode:
    return [
        (0, "System Event #0xff | Timestamp Clock Sync | Asserted"),
        (1, "System Event #0xff | Timestamp Clock Sync | Asserted"),
    ]


def _warm(rng: random.Random) -> Episode:
    sensor = rng.choice(("Temperature Inlet Temp", "Temperature Exhaust Temp"))
    reading = f"Reading {rng.randint(41, 44)} > Threshold 40 degrees C"
    return [
        (0, f"{sensor} | Upper Non-critical going high | Asserted | {reading}"),
        (
            rng.randint(120, 3000),
            f"{sensor} | Upper Non-critical going high | Deasserted | Reading 39 < Threshold 40 degrees C",
        ),
    ]


def _bus_corrected(_: random.Random) -> Episode:
    return [(0, "Critical Interrupt PCIE Error | Bus Correctable error | Asserted")]


_KINDS = (
    (_input_blinks, 26),
    (_door, 6),
    (_corrected, 40),
    (_cleared, 4),
    (_clock, 8),
    (_warm, 8),
    (_bus_corrected, 8),
)


def sel_episode(rng: random.Random) -> Episode:
    """One occasion: seconds after its begin, and `sensor | event | state`."""
    return rng.choices([make for make, _ in _KINDS], [weight for _, weight in _KINDS])[0](rng)
