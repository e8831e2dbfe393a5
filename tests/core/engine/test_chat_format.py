"""Templates of well-known shapes, taken apart and put together again."""

from core.engine.chat_format import PLAIN, chat_format

CHATML = (
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}{{ '<|im_start|>system\nDefault<|im_end|>\n' }}"
    "{% endif %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' + m['content'] | trim + "
    "'<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
THINKING = (
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' and not loop.last %}<past>{% endif %}"
    "{{ m.content }}[/]{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}"
)
DATED = "{% if strftime_now is defined %}{{ strftime_now('%d') }}{% else %}no date{% endif %}" + CHATML


def test_chatml():
    chat = chat_format(CHATML, "", "")
    assert chat.before_system == "<|im_start|>system\n"
    assert chat.system_to_user == "<|im_end|>\n<|im_start|>user\n"
    assert chat.user_to_answer == "<|im_end|>\n<|im_start|>assistant\n"
    assert chat.answer_to_user == "<|im_end|>\n<|im_start|>user\n"


def test_a_template_without_a_system_role_takes_it_in_the_first_message():
    chat = chat_format(GEMMA, "<bos>", "")
    assert chat.before_system == "<bos><start_of_turn>user\n"
    assert chat.system_to_user == "\n\n"
    assert chat.user_to_answer == "<end_of_turn>\n<start_of_turn>model\n"


def test_the_prompt_for_an_answer_is_used_also_in_the_past():
    assert chat_format(THINKING, "", "").user_to_answer == "[/][assistant]<think>"


def test_no_date_gets_into_the_head():
    assert chat_format(DATED, "", "").before_system.startswith("no date")


def test_what_cannot_be_used_falls_back_to_plain_text():
    for template in (None, "", "{% broken", "{{ messages[9].content }}", "{{ 1/0 }}", "always the same"):
        assert chat_format(template, "", "") == PLAIN


def test_a_template_is_untrusted():
    evil = "{{ ''.__class__.__mro__[1].__subclasses__() }}" + CHATML
    assert chat_format(evil, "", "") == PLAIN


def test_templates_with_a_clock_with_loop_controls_and_with_training_marks():
    body = "[{{ m.role }}]{{ m.content }}"
    for template in (
        "{{ strftime_now('%d') }}{% for m in messages %}" + body + "{% endfor %}[assistant]",
        "{% for m in messages %}{% if false %}{% break %}{% endif %}" + body + "{% endfor %}[assistant]",
        "{% for m in messages %}{% generation %}" + body + "{% endgeneration %}{% endfor %}[assistant]",
    ):
        assert chat_format(template, "", "").user_to_answer == "[assistant]"
