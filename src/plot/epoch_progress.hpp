// How far a training is, in epochs, where the number of steps in an epoch changes inside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dtrain::plot {

// A report says which step of how many it is of: of those that were made and those that are left. Where the batch
// follows the workers, the latter change when a worker joins or leaves, and the quotient would jump, and go back where
// one left. The steps behind such a change therefore share what was left of the epoch before it. A place goes back
// where a run is resumed from an earlier one, and nowhere else.
class EpochProgress {
 public:
  // The epochs, as a fraction, that are trained behind step `step`, from 0, of epoch `epoch`, which has `steps`. Steps
  // come in the order of the training. `begins`: how often the run has begun or was resumed until then.
  double add(double epoch, double step, double steps, std::uint32_t begins = 0);
  // As it was before the run began once more. Steps of that time may be added again, from any of them on.
  EpochProgress as_of(std::size_t begins) const;

 private:
  // From step `from` on, before which the share `done` of the epoch was trained, the epoch has `steps`.
  struct Part {
    std::uint32_t begins;
    double epoch, from, done, steps;
    double share_behind(double step) const;
  };
  struct Place {
    std::uint32_t begins;
    double epoch, step, steps, share;
  };
  const Part* part_of(double epoch, double step, std::uint32_t begins) const;
  double share_before(double step) const;
  void append(const Part& part);

  std::vector<Part> parts_;  // only behind changes inside an epoch, in the order of the training
  std::optional<Place> last_;
};

}  // namespace dtrain::plot
