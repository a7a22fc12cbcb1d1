//! Random operations on trajectories without a template: what was there stays, and what was sampled stays sampled.

use proptest::prelude::*;
use tokentape::group::{Group, ShareCredit};
use tokentape::trajectory::{Act, Identity, Stage, Trajectory};

#[derive(Debug, Clone)]
enum Step {
    Act(Vec<i32>),
    Continue(Vec<i32>),
    Append(Vec<i32>),
    Fork,
    Save,
    Bad(i32),
}

fn ids() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(0..500, 1..6)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        ids().prop_map(Step::Act),
        ids().prop_map(Step::Continue),
        ids().prop_map(Step::Append),
        Just(Step::Fork),
        Just(Step::Save),
        (500..1000).prop_map(Step::Bad),
    ]
}

fn act(trajectory: &mut Trajectory, token_ids: &[i32], continues: bool) -> bool {
    let logprobs = vec![-0.5; token_ids.len()];
    let act = Act { token_ids, logprobs: Some(&logprobs), finish_reason: "stop", continues, ..Act::default() };
    trajectory.act(&act).is_ok()
}

fn sampled(trajectory: &Trajectory) -> Vec<i32> {
    let columns = trajectory.columns();
    let pairs = columns.token_ids().into_iter().zip(columns.sampled_mask());
    pairs.filter(|(_, sampled)| *sampled == 1).map(|(id, _)| id).collect()
}

proptest! {
    #[test]
    fn sampled_ids_survive_every_operation(steps in prop::collection::vec(step(), 0..24)) {
        let mut trajectory = Trajectory::from_prompt(&[1, 2], Some(500), Identity::new(None)).unwrap();
        let mut expected = Vec::new();
        for step in steps {
            let before = trajectory.columns().token_ids();
            match step {
                Step::Act(ids) if act(&mut trajectory, &ids, false) => expected.extend(ids),
                Step::Continue(ids) if act(&mut trajectory, &ids, true) => expected.extend(ids),
                Step::Act(_) => prop_assert_eq!(trajectory.stage(), Stage::Acted),
                Step::Continue(_) => prop_assert_eq!(trajectory.stage(), Stage::Prompted),
                Step::Append(ids) => trajectory.append(&ids).unwrap(),
                Step::Fork => trajectory = trajectory.fork().unwrap(),
                Step::Save => trajectory = Trajectory::restore(trajectory.save(), None).unwrap(),
                Step::Bad(id) => {
                    prop_assert!(!act(&mut trajectory, &[id], false) && trajectory.append(&[id]).is_err());
                    prop_assert_eq!(trajectory.len(), before.len());
                }
            }
            let after = trajectory.columns().token_ids();
            prop_assert_eq!(&after[..before.len()], &before[..]);
            prop_assert_eq!(sampled(&trajectory), expected.clone());
            prop_assert_eq!(trajectory.columns().message_index().len(), after.len());
            prop_assert_eq!(trajectory.columns().logprobs().len(), after.len());
        }
    }

    #[test]
    fn each_sampled_token_carries_loss_once(branches in prop::collection::vec((0..4usize, ids()), 1..6)) {
        let mut open = vec![Trajectory::from_prompt(&[1], None, Identity::new(None)).unwrap()];
        let mut played = 0;
        for (parent, ids) in branches {
            let parent = parent % open.len();
            let mut branch = open[parent].fork().unwrap();
            if branch.stage() == Stage::Acted {
                branch.append(&[7]).unwrap();
            }
            prop_assert!(act(&mut branch, &ids, false));
            played += ids.len();
            branch.set_reward(Some(1.0)).unwrap();
            open.push(branch);
        }
        let given: Vec<_> = open.into_iter().skip(1).map(std::sync::Arc::new).collect();
        let group = Group::new("g".into(), "".into(), &given).unwrap();
        let group = group
            .with_advantages(ShareCredit::Mean, |returns| Ok(tokentape::advantage::Estimator::DrGrpo.estimate(returns)))
            .unwrap();
        let loss: usize = group.rows().unwrap().iter().flat_map(|row| &row.loss_mask).map(|loss| usize::from(*loss)).sum();
        prop_assert_eq!(loss, played);
    }
}
