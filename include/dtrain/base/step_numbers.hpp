// Numbers the steps of a training run through all its epochs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain {

// Reports say which step of which epoch they are of. The number of a step in the run is the number of steps in the
// epochs before it, and of those before it in its own, plus 1. Epochs need not have equally many steps, and where the
// batch follows the workers the number changes inside an epoch, too. What was not added is estimated: an epoch has as
// many steps as the last one before it that was added, and those before the first one as many as that.
class StepNumbers {
 public:
  // Before this step of the epoch, counted from 0, the run had `before` steps. For a run whose reports begin there.
  void begin_at(double epoch, double step, double before);
  // The number, from 1, of step `step`, from 0, of an epoch that is expected to have `steps`. Steps come in the order
  // of the training, and the last one of each epoch must be among them; a run that is resumed goes back to an earlier
  // one. `begins`: how often the run has begun or was resumed until then.
  double add(double epoch, double step, double steps, std::uint32_t begins = 0);
  // The number of an epoch's last step, as far as it is known; 0: no step was added.
  double last_of(double epoch) const;
  // As it was before the run began once more. Steps of that time may be added again, from any of them on.
  StepNumbers as_of(std::size_t begins) const;

 private:
  // From this epoch on each has `steps` steps, up to the next part.
  struct Part {
    double epoch, before, steps;
    std::uint32_t begins;
    double before_epoch(double other) const { return before + (other - epoch) * steps; }
  };
  const Part* part_of(double epoch) const;
  void append(const Part& part);

  std::vector<Part> parts_;  // in the order of the training; a resume begins a part of an earlier epoch
};

}  // namespace dtrain
