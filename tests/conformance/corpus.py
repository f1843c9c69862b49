"""Where a corpus lies beside a checkout, and which of its eval files are refused, and why."""

from pathlib import Path
from typing import Final

CORPUS: Final = Path(__file__).parents[3] / "shared" / "corpus"

NO_INPUT: Final = "incomplete test: it needs `input`"
NOTHING_TO_GRADE_BY: Final = "incomplete test: it needs something that tells a good answer"
NO_SUCH_FILE: Final = "no file "
UNKNOWN_EVALUATOR: Final = "unknown evaluator "
UNKNOWN_KEY: Final = "unknown key"
KEY_TWICE: Final = "duplicate key"
INVALID_RUBRIC: Final = "invalid rubric: "
INVALID_REGEX: Final = "no regular expression as JavaScript knows them: "
NEGATIVE_WEIGHT: Final = "must be at least 0, not -1"
NO_VALUE: Final = "the key 'value' is missing"

REFUSED: Final[dict[str, set[str]]] = {
    "agentevals/tests/patterns__multi-turn__07.yaml": {NO_INPUT},
    "agentevals/tests/specification__evalcase-schema__16.yaml": {NOTHING_TO_GRADE_BY},
    "agentevals/tests/specification__evalcase-schema__17.yaml": {NO_INPUT},
    "agentevals-old-cases/tests/specification__evalcase-schema__17.yaml": {NO_INPUT},
    "agentevals-old-evalcases/tests/evaluators__rubric__15.yaml": {NO_INPUT, UNKNOWN_KEY},
    "agentevals-old-evalcases/tests/specification__evalcase-schema__16.yaml": {NOTHING_TO_GRADE_BY},
    "agentevals-old-evalcases/tests/specification__evalcase-schema__17.yaml": {NO_INPUT},
    "agentv-docs-head/files/evaluation__eval-cases__02.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-head/files/evaluation__eval-cases__03.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-head/files/evaluation__eval-cases__04.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-head/files/evaluation__examples__06.yaml": {NO_SUCH_FILE},
    "agentv-docs-head/files/evaluation__examples__09.yaml": {NO_SUCH_FILE},
    "agentv-docs-head/files/evaluation__experiments__02.yaml": {NOTHING_TO_GRADE_BY, NO_SUCH_FILE},
    "agentv-docs-head/files/graders__custom-assertions__02.yaml": {UNKNOWN_EVALUATOR},
    "agentv-docs-head/files/graders__llm-graders__05.yaml": {NO_INPUT},
    "agentv-docs-head/files/guides__agent-eval-layers__05.yaml": {UNKNOWN_KEY},
    "agentv-docs-head/files/targets__configuration__03.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-head/files/targets__configuration__04.yaml": {NO_SUCH_FILE},
    "agentv-docs-head/tests/evaluation__eval-cases__10.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-head/tests/evaluation__examples__10.yaml": {NO_INPUT},
    "agentv-docs-head/tests/evaluation__experiments__03.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__eval-files__03.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__eval-files__08.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__eval-files__09.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__eval-files__14.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__eval-files__16.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__examples__06.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__evaluation__examples__10.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__graders__custom-assertions__02.yaml": {UNKNOWN_EVALUATOR},
    "agentv-docs-seed/files/docs__guides__agent-eval-layers__05.yaml": {UNKNOWN_KEY},
    "agentv-docs-seed/files/docs__guides__benchmark-provenance__05.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__guides__benchmark-provenance__06.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/files/docs__guides__eval-authoring__04.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-seed/files/docs__guides__workspace-pool__02.yaml": {KEY_TWICE},
    "agentv-docs-seed/tests/docs__evaluation__eval-cases__10.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-seed/tests/docs__evaluation__eval-files__13.yaml": {NO_INPUT},
    "agentv-docs-seed/tests/docs__evaluation__eval-files__15.yaml": {NO_SUCH_FILE},
    "agentv-docs-seed/tests/docs__guides__autoresearch__01.yaml": {NO_INPUT},
    "agentv-docs-seed/tests/docs__guides__eval-authoring__02.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-seed/tests/docs__guides__eval-authoring__03.yaml": {NOTHING_TO_GRADE_BY},
    "agentv-docs-seed/tests/docs__guides__eval-authoring__05.yaml": {NOTHING_TO_GRADE_BY},
    "probes/evals/deterministic.eval.yaml": {
        INVALID_REGEX,
        NEGATIVE_WEIGHT,
        NOTHING_TO_GRADE_BY,
        NO_VALUE,
        UNKNOWN_EVALUATOR,
    },
    "probes/evals/rubric.eval.yaml": {INVALID_RUBRIC},
    "probes-head/evals/determ.eval.yaml": {NOTHING_TO_GRADE_BY},
}
"""The problems of every eval file of the corpus that has any: what each message begins with."""
