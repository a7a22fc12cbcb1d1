//! Rewards to advantages: pure functions over one group's returns, one value a rollout.
//!
//! *Invariant*: advantages are finite, and exactly zero where the returns do not differ (standard deviation below
//! [`ZERO_VARIANCE`], or a single rollout): float noise is never divided by itself.

/// Returns whose standard deviation is below this do not differ.
pub const ZERO_VARIANCE: f64 = 1e-6;

/// What an estimator found.
#[derive(Debug, Clone, PartialEq)]
pub struct Advantages {
    /// One value a rollout.
    pub values: Vec<f64>,
    /// The returns do not differ, so every value is zero and the group teaches nothing.
    pub zero_variance: bool,
}

/// How returns become advantages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Estimator {
    /// `(R - mean) / (std + eps)`, the group-relative advantage of GRPO (arXiv 2402.03300, section 4.1.2).
    Grpo {
        /// Delta degrees of freedom of the standard deviation: 1 for the sample's, as TRL and verl, 0 for the population's.
        ddof: u32,
        /// Added to the standard deviation.
        eps: f64,
    },
    /// `R - mean`, without the division (Dr. GRPO, arXiv 2503.20783, section 3.2).
    DrGrpo,
    /// `R -` the mean of the others (leave-one-out REINFORCE, arXiv 2402.14740, section 2.2).
    Rloo,
}

impl Estimator {
    /// Advantages of `returns`.
    pub fn estimate(self, returns: &[f64]) -> Advantages {
        if returns.len() < 2 || deviation(returns, 1) < ZERO_VARIANCE {
            return Advantages { values: vec![0.0; returns.len()], zero_variance: true };
        }
        let center = mean(returns);
        let count = count(returns.len());
        let scale = match self {
            Self::Grpo { ddof, eps } => 1.0 / (deviation(returns, ddof) + eps),
            Self::DrGrpo => 1.0,
            // R - (sum - R) / (n - 1) = (R - mean) * n / (n - 1)
            Self::Rloo => count / (count - 1.0),
        };
        Advantages { values: returns.iter().map(|value| (value - center) * scale).collect(), zero_variance: false }
    }
}

/// Advantages of the sampled tokens of a row from rewards to come: generalised advantage estimation (arXiv 1506.02438,
/// equation 16), `A_t = d_t + discount * trace * A_(t+1)` with `d_t = r_t + discount * V_(t+1) - V_t`.
///
/// `t` counts sampled tokens only, and the value behind the last is 0. A reward on an unsampled token belongs to the
/// sampled token before it. Without `values` and with `trace` 1 these are the discounted rewards to come. Unsampled
/// tokens get 0.
pub fn to_come(rewards: &[f32], values: Option<&[f32]>, sampled: &[u8], discount: f64, trace: f64) -> Vec<f32> {
    let mut found = vec![0.0; sampled.len()];
    let (mut reward, mut next_value, mut next) = (0.0, 0.0, 0.0);
    for token in (0..sampled.len()).rev() {
        reward += rewards.get(token).copied().map_or(0.0, f64::from);
        if sampled[token] == 0 {
            continue;
        }
        let value = values.and_then(|values| values.get(token)).copied().map_or(0.0, f64::from);
        next = reward + discount * next_value - value + discount * trace * next;
        found[token] = next as f32;
        (reward, next_value) = (0.0, value);
    }
    found
}

/// The mean of `values`; 0 of none.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len().max(1))
}

#[expect(clippy::cast_precision_loss, reason = "a group has far fewer than 2^52 rollouts")]
fn count(length: usize) -> f64 {
    length as f64
}

fn deviation(values: &[f64], ddof: u32) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center).powi(2)).sum();
    (squares / (count(values.len()) - f64::from(ddof)).max(1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRPO: Estimator = Estimator::Grpo { ddof: 1, eps: 0.0 };

    #[test]
    fn two_rollouts_by_hand() {
        let half = 0.5_f64.sqrt();
        assert_eq!(GRPO.estimate(&[1.0, 0.0]).values, [0.5 / half, -0.5 / half]);
        assert_eq!(Estimator::Grpo { ddof: 0, eps: 0.0 }.estimate(&[1.0, 0.0]).values, [1.0, -1.0]);
        assert_eq!(Estimator::DrGrpo.estimate(&[1.0, 0.0]).values, [0.5, -0.5]);
        assert_eq!(Estimator::Rloo.estimate(&[1.0, 0.0]).values, [1.0, -1.0]);
    }

    #[test]
    fn leave_one_out_is_the_mean_of_the_others() {
        let returns = [3.0, 1.0, 5.0];
        assert_eq!(Estimator::Rloo.estimate(&returns).values, [0.0, -3.0, 3.0]);
    }

    #[test]
    fn rewards_to_come_by_hand() {
        let (rewards, sampled) = ([0.0, 1.0, 4.0, 2.0], [1, 1, 0, 1]);
        assert_eq!(to_come(&rewards, None, &sampled, 0.5, 1.0), [3.0, 6.0, 0.0, 2.0]);
        let values = [1.0, 2.0, 9.0, 4.0];
        // d = (0 + 2/2 - 1, 5 + 4/2 - 2, 2 - 4), then A = d + 0.25 * next
        assert_eq!(to_come(&rewards, Some(&values), &sampled, 0.5, 0.5), [1.125, 4.5, 0.0, -2.0]);
    }

    #[test]
    fn equal_returns_give_exact_zeros_and_a_flag() {
        for returns in [&[1.0; 4][..], &[0.3], &[0.1, 0.1, 0.1], &[0.1 + 0.2, 0.3], &[]] {
            for estimator in [GRPO, Estimator::DrGrpo, Estimator::Rloo] {
                let found = estimator.estimate(returns);
                assert!(found.zero_variance && found.values.iter().all(|value| *value == 0.0), "{returns:?}");
            }
        }
    }
}
