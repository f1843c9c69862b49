"""Types of assertions that other tools know and passgate does not have."""

_FOREIGN = frozenset(
    {
        *("agent_rubric", "answer_relevance", "bleu", "classifier", "contains_html", "contains_json", "contains_sql"),
        *("contains_xml", "context_faithfulness", "context_recall", "context_relevance", "conversation_relevance"),
        *("factuality", "finish_reason", "g_eval", "gleu", "guardrails", "human", "inline_assert", "is_html"),
        *("is_refusal", "is_sql", "is_valid_function_call", "is_valid_openai_function_call"),
        *("is_valid_openai_tools_call", "is_xml", "levenshtein", "max_score", "meteor", "model_graded_closedqa"),
        *("model_graded_factuality", "moderation", "perplexity", "perplexity_score", "pi", "rouge_l", "rouge_n"),
        *("rouge_s", "search_rubric", "select_best", "similar", "tool_call_f1", "trace_error_spans"),
        *("trace_span_count", "trace_span_duration", "webhook"),
    }
)
_FAMILIES = ("similar:", "promptfoo:")


def is_foreign(name: str) -> bool:
    """Whether a type, in snake_case, is one of another tool."""
    return name in _FOREIGN or name.startswith(_FAMILIES)
