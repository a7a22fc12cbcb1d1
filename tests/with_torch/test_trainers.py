"""Trainers of other projects take what the feeds give for one step: loss and gradients are those of the rows."""

from __future__ import annotations

import json
import types

import numpy as np
import pytest

import tokentape as tt
from trainers import VERL, assert_same_step, clipped, grpo, trainer

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def test_atropos_takes_a_step_of_its_example_trainer(model, rows):
    data = trainer("example_trainer.data", "wandb", "tenacity")
    training = trainer("example_trainer.training", "wandb", "tenacity")
    config = trainer("example_trainer.config", "wandb", "tenacity")
    groups = tt.feeds.to_atropos(tt.Batch.from_rows([row | {"advantages": None} for row in rows]))
    wire = json.loads(json.dumps({"batch": [group | {"overrides": None} for group in groups]}))
    tokens, labels, advantages, temperatures, logprobs = data.pad_data_to_good_offset(wire, batch_size=len(rows))
    settings = config.TrainingConfig(model_name="none", lr=0.1, device="cpu", gradient_accumulation_steps=1)
    objective = lambda: clipped(model, rows, grpo(rows, ddof=0), over="rows", atropos=True)  # noqa: E731
    expected = objective()
    (loss, _) = training.compute_grpo_loss(
        model, tokens[0], labels[0], advantages[0], temperatures[0], 1, inference_logprobs=logprobs[0], clip_eps=0.2
    )
    assert_same_step(model, loss, expected)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    gradients = torch.autograd.grad(
        clipped(model, rows, grpo(rows, ddof=0), over="rows", atropos=True), list(model.parameters())
    )
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    done = training.run_training_step(
        model, optimiser, tokens, labels, advantages, temperatures, settings, 0, inference_logprob_batches=logprobs
    )
    assert done["loss"] == pytest.approx(expected.item(), rel=1e-4)
    with torch.no_grad():
        for parameter, old, gradient in zip(model.parameters(), before, gradients, strict=True):
            step = 0.1 * gradient / max(1.0, float(norm) + 1e-6)  # the trainer clips the norm at 1
            assert torch.allclose(parameter, old - step, atol=1e-6)
            parameter.copy_(old)


def test_verl_computes_advantages_and_the_clipped_loss(model, rows):
    protocol = trainer("verl.protocol", *VERL)
    algorithms = trainer("verl.trainer.ppo.core_algos", *VERL)
    actor = trainer("verl.workers.config", *VERL)
    reward = trainer("verl.trainer.ppo.reward", *VERL)
    data = protocol.DataProto.from_dict(tensors=tt.feeds.to_verl_tensors(tt.Batch.from_rows(rows), pad_token_id=0))
    names = np.array([row["group_id"] for row in rows], dtype=object)
    scores, _ = reward.extract_reward(data)
    advantages, _ = algorithms.compute_grpo_outcome_advantage(scores, data.batch["response_mask"], names)
    inputs = {name: data.batch[name] for name in ("input_ids", "attention_mask", "position_ids")}
    width = data.batch["responses"].shape[1]
    logits = model(**inputs).logits[:, -width - 1 : -1]
    logprobs = logits.log_softmax(-1).gather(2, data.batch["responses"][..., None])[..., 0]
    config = actor.ActorConfig(strategy="fsdp", rollout_n=3, ppo_micro_batch_size_per_gpu=1, clip_ratio_c=1e9)
    loss, _ = algorithms.compute_policy_loss_vanilla(
        old_log_prob=data.batch["rollout_log_probs"], log_prob=logprobs, advantages=advantages,
        response_mask=data.batch["response_mask"], loss_agg_mode="token-mean", config=config,
    )  # fmt: skip
    assert_same_step(model, loss, clipped(model, rows, grpo(rows, ddof=1, epsilon=1e-6)))


def test_verl_takes_the_outputs_of_an_agent_loop(rows):
    loop = trainer("verl.experimental.agent_loop.agent_loop", *VERL)
    for row, fields in zip(rows, tt.feeds.to_verl(tt.Batch.from_rows(rows)), strict=True):
        output = loop.AgentLoopOutput(**fields)
        tensors = output.as_dict()
        assert torch.cat([tensors["prompts"], tensors["responses"]]).tolist() == row["token_ids"].tolist()
        assert tensors["response_mask"].tolist() == row["sampled_mask"][len(tensors["prompts"]) :].tolist()
        assert tensors["rollout_log_probs"].shape == tensors["responses"].shape


def test_openrlhf_makes_experience_of_rows_and_computes_the_clipped_loss(model, rows):
    absent = ("ray", "vllm", "deepspeed", "flash_attn", "peft", "pylatexenc", "aiohttp", "torchdata")
    generator = trainer("openrlhf.trainer.ppo_utils.samples_generator", *absent)
    experience = trainer("openrlhf.trainer.ppo_utils.experience", *absent)
    models = trainer("openrlhf.models", *absent)
    responses = tt.feeds.to_openrlhf(tt.Batch.from_rows(rows))
    made = [generator.SamplesGenerator._process_response_into_experience(None, one) for one in responses]
    items = [item for one in made for item in experience.split_experience_batch(one)]
    batch = experience.make_experience_batch(experience.remove_padding_in_sequences(items))
    assert batch.rewards.tolist() == pytest.approx([row["reward"] for row in rows])
    assert batch.truncated.tolist() == [False] * len(rows)
    actor = models.Actor(model)
    actor.packing_samples, actor.temperature = False, 1.0  # what it sets only where it loads the model itself
    logprobs = actor(batch.sequences, batch.action_mask, batch.attention_mask)
    loss, *_ = models.PolicyLoss()(
        logprobs, batch.rollout_log_probs, batch.rewards[:, None] * batch.action_mask, action_mask=batch.action_mask
    )
    assert_same_step(model, loss, clipped(model, rows, [row["reward"] for row in rows]))


SKYRL = ("ray", "loguru", "jaxtyping", "torchdata", "omegaconf", "peft", "cloudpathlib", "skyrl_gym", "aiohttp", "vllm")


def test_skyrl_takes_generator_output_and_computes_the_clipped_loss(model, rows, monkeypatch):
    loader = lambda name: trainer(name, *SKYRL, monkeypatch=monkeypatch)  # noqa: E731
    preprocess = loader("skyrl.train.dataset.preprocess")
    batches = loader("skyrl.backends.skyrl_train.training_batch")
    losses = loader("skyrl.backends.skyrl_train.utils.ppo_utils")
    settings = loader("skyrl.train.config")
    utilities = loader("skyrl.train.utils.trainer_utils")
    output = tt.feeds.to_skyrl(tt.Batch.from_rows(rows))
    utilities.validate_generator_output(len(rows), output)
    utilities.validate_generator_output(len(rows), output, step_wise=True)
    names = [identity.instance_id for identity in output["trajectory_ids"]]
    assert preprocess.compute_prompt_boundaries(names) == [(0, 3), (3, 6)]
    rewards = [
        [0.0] * (len(ids) - 1) + [one] for ids, one in zip(output["response_ids"], output["rewards"], strict=True)
    ]
    sequences, attention, response, scores, mask, old, _ = preprocess.convert_prompts_responses_to_batch_tensors(
        types.SimpleNamespace(pad_token_id=0), output["prompt_token_ids"], output["response_ids"], rewards,
        output["loss_masks"], output["rollout_logprobs"],
    )  # fmt: skip
    data = batches.TrainingInputBatch({
        "sequences": sequences, "attention_mask": attention, "response_mask": response, "rewards": scores,
        "loss_mask": mask, "rollout_logprobs": old,
    })  # fmt: skip
    advantages, _ = losses.compute_grpo_outcome_advantage(data["rewards"], data["response_mask"], np.array(names))
    advantages = losses.apply_loss_reduction_to_advantages_minibatch(
        advantages, data["loss_mask"], "token_mean", len(rows), 64
    )
    width = response.shape[1]
    positions = (attention.cumsum(1) - 1).clamp(min=0)
    logits = model(input_ids=sequences, attention_mask=attention, position_ids=positions).logits[:, -width - 1 : -1]
    logprobs = logits.log_softmax(-1).gather(2, sequences[:, -width:, None])[..., 0]
    config = settings.AlgorithmConfig(policy_loss_type="regular")
    loss, _ = losses.ppo_policy_loss(
        logprobs, data["rollout_logprobs"], advantages, config, loss_mask=data["loss_mask"]
    )
    assert_same_step(model, loss, clipped(model, rows, grpo(rows, ddof=1, epsilon=1e-6)))


def test_tinker_takes_data_equal_to_those_of_its_cookbook(model, rows):
    tinker = trainer("tinker")
    processing = trainer("tinker_cookbook.rl.data_processing", "chz", "PIL", "blobfile", "termcolor", "tml_renderers")
    cookbook = trainer("tinker_cookbook.rl.types", "chz")
    completers = trainer("tinker_cookbook.completers", "chz")
    for row, fields in zip(rows, tt.feeds.to_tinker_shifted(tt.Batch.from_rows(rows)), strict=True):
        found = tinker.Datum(
            model_input=tinker.ModelInput.from_ints(fields["model_input"].tolist()),
            loss_fn_inputs=fields["loss_fn_inputs"],
        )
        edges = np.flatnonzero(np.diff(np.append(row["sampled_mask"], 0))) + 1
        transitions = [
            cookbook.Transition(
                ob=tinker.ModelInput.from_ints(row["token_ids"][:start].tolist()),
                ac=completers.TokensWithLogprobs(
                    tokens=row["token_ids"][start:end].tolist(), maybe_logprobs=row["logprobs"][start:end].tolist()
                ),
                reward=0.0, episode_done=False,
            )
            for start, end in edges.reshape(-1, 2).tolist()
        ]  # fmt: skip
        trajectory = cookbook.Trajectory(transitions=transitions, final_ob=tinker.ModelInput.empty())
        (wanted,) = processing.trajectory_to_data(trajectory, row["reward"], include_provenance=False)
        assert found.model_input == wanted.model_input
        assert set(found.loss_fn_inputs) == set(wanted.loss_fn_inputs)
        for name, value in wanted.loss_fn_inputs.items():
            assert found.loss_fn_inputs[name].dtype == value.dtype, name
            assert found.loss_fn_inputs[name].to_torch().tolist() == pytest.approx(value.to_torch().tolist()), name
