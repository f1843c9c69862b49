"""Verify: a signed verdict and a public key in, what the verdict says and which of it is still true out."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from passgate import __version__
from passgate.tasks.attestations.keys import HOW_TO_PUBLISH, MAX_KEY_BYTES, VerifyingKey, verifying_key
from passgate.tasks.attestations.reading import UnreadableError, read_bounded, recorded_trials
from passgate.tasks.attestations.statement import (
    IN_TOTO,
    VERDICT_FILE,
    claim_of,
    read_envelope,
    read_statement,
    signed_bytes,
)
from passgate.tasks.errors import StorageError, UsageError
from passgate.tasks.files.temporary import temporary_folder
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity.git import full_commit
from passgate.tasks.model.json_values import trials_digest
from passgate.tasks.model.verdict import CheckResult, Claim, Statement, Verdict, Verification, VerificationCheck

# The files come from somebody else, so each has a size above which it is not read into memory.
_MAX_ENVELOPE_BYTES = 16 * 1024**2
_MAX_VERDICT_BYTES = 256 * 1024**2
_MAX_JOURNAL_BYTES = 2 * 1024**3
_JOURNAL = "journal.jsonl"
_PARTS = "journal*.jsonl"


def _check(finding: CheckResult, subject: str, detail: str) -> VerificationCheck:
    return VerificationCheck(finding=finding, subject=subject, detail=detail)


_ok = partial(_check, CheckResult.OK)
_differs = partial(_check, CheckResult.DIFFERS)
_not_here = partial(_check, CheckResult.NOT_HERE)


@contextmanager
def records_at(place: str) -> Iterator[Path]:
    """The file or folder of a signed verdict, or a run by its name; of one at a URL copies of what its signed verdict
    names.

    Raises `UsageError` for what names no run, `StorageError`.
    """
    file = Path(place)
    # No id of a run has a slash or a dot in it.
    if "://" not in place and (file.exists() or file.suffix or file.parts[1:]):
        yield file
        return
    # It needs pandas, which a file on this machine does without.
    from passgate.tasks.planning.find_run import find_run

    store = RunStore.of(find_run(place))
    if not store.is_elsewhere:
        yield store.path
        return
    with temporary_folder("verify") as folder:
        store.copy_records(folder)
        yield folder


def verify(file: Path, key_file: Path | None, repository: Path) -> Verification:
    """Check the signature of an envelope, then everything it names: files beside it, the commit in a repository. For
    the folder of a run, `file` is the envelope in it.

    Raises `UsageError` for files that are no envelope and no key, and for an envelope with a valid signature that
    contains no statement about a verdict.
    """
    if file.is_dir():
        file = RunStore(str(file)).attestation
        if file.with_name(VERDICT_FILE).exists() and not file.exists():
            remedy = "`passgate sign-off` with --key does, where the gate asks for a sign-off"
            raise UsageError(f"nobody has signed the verdict of {file.parent.name}: {remedy}")
    try:
        envelope = read_envelope(read_bounded(file, _MAX_ENVELOPE_BYTES))
    except UnreadableError as error:
        raise UsageError(f"{file} is no signed verdict: it {error}") from error
    key, message = _key(key_file), signed_bytes(envelope.payload, envelope.payload_type)
    # The key ids in an envelope are not signed, so every signature is tried with the key.
    if any(key.has_signed(message, signature.sig) for signature in envelope.signatures):
        signed = _ok("signature", f"by the key {key.keyid}")
    else:
        # What nobody has signed may say anything: it is neither read nor shown.
        named = ", ".join(dict.fromkeys(signature.keyid or "unknown" for signature in envelope.signatures))
        detail = f"not by the key {key.keyid}, or of something else; it names the key {named}"
        return Verification(checks=(_differs("signature", detail),))
    try:
        if envelope.payload_type != IN_TOTO:
            raise UnreadableError(f"holds no in-toto statement but {envelope.payload_type!r}")
        statement = read_statement(envelope.payload)
    except UnreadableError as error:
        raise UsageError(f"{file} is signed, but {error}") from error
    checks = (
        signed,
        *_verdict(file.parent / VERDICT_FILE, statement),
        _trials(file.parent, statement.claim),
        _commit(repository, statement.claim),
    )
    return Verification(checks=checks, statement=statement)


def _key(file: Path | None) -> VerifyingKey:
    if file is None:
        raise UsageError(
            "without --key nothing is verified: anyone could have made the signature. Name the public key of whoever "
            f"may sign off, as you have it from them; they {HOW_TO_PUBLISH}"
        )
    try:
        return verifying_key(read_bounded(file, MAX_KEY_BYTES))
    except UnreadableError as error:
        raise UsageError(f"the key {file} {error}") from error


def _verdict(file: Path, statement: Statement) -> Iterator[VerificationCheck]:
    """The digest of the file, then its content."""
    if not file.exists():
        yield _not_here(VERDICT_FILE, "no such file beside the envelope")
        return
    try:
        content = read_bounded(file, _MAX_VERDICT_BYTES)
    except UnreadableError as error:
        yield _differs(VERDICT_FILE, str(error))
        return
    digest = hashlib.sha256(content).hexdigest()
    if digest != statement.verdict_file:
        yield _differs(VERDICT_FILE, f"SHA-256 {digest}, signed was {statement.verdict_file}")
        return
    yield _ok(VERDICT_FILE, f"SHA-256 {digest}")
    yield _content(content, statement.claim)


def _content(content: bytes, claim: Claim) -> VerificationCheck:
    try:
        verdict = Verdict.model_validate_json(content)
    except ValidationError:
        # The digest is right, so the file is what was signed. Another version of passgate wrote it.
        detail = f"written by passgate {claim.inputs.passgate_version}: this one, {__version__}, cannot read it"
        return _not_here("verdict", detail)
    here = claim_of(verdict)
    different = [name for name in Claim.model_fields if getattr(here, name) != getattr(claim, name)]
    if claim.sign_off is not None and claim.sign_off.verdict_digest != here.verdict_digest:
        different.append("sign_off.verdict_digest")
    if different:
        return _differs("verdict", f"says something else: {', '.join(different)}")
    return _ok("verdict", f"digest {claim.verdict_digest}, its inputs, its sign-off")


def _trials(folder: Path, claim: Claim) -> VerificationCheck:
    """Check every transcript by the digest in its trial, and the trials by the digest of what was judged."""
    parts = sorted(folder.glob(_PARTS))
    if not parts:
        return _not_here(_JOURNAL, "no such file beside the envelope")
    try:
        trials = recorded_trials(read_bounded(part, _MAX_JOURNAL_BYTES) for part in parts)
    except (UnreadableError, StorageError) as error:
        return _differs(_JOURNAL, str(error))
    digest = trials_digest(trials)
    if digest != claim.inputs.trials:
        return _differs(
            _JOURNAL, f"its {len(trials)} trials have the digest {digest}, judged were {claim.inputs.trials}"
        )
    return _ok(_JOURNAL, f"{len(trials)} trials, digest {digest}")


def _commit(repository: Path, claim: Claim) -> VerificationCheck:
    commit = claim.revision.commit
    if not commit:
        return _not_here("commit", "the run was not made in a repository")
    # git's name of a commit is a digest of its content, so a repository that knows the name has the same commit.
    if full_commit(repository, commit) != commit:
        return _not_here("commit", f"no repository here that knows {commit}")
    changes = ", but what was tested had changes that are in no commit" if claim.revision.dirty else ""
    return _ok("commit", f"{commit}{changes}")
