#include <dtrain/base/step_numbers.hpp>

#include <algorithm>
#include <iterator>

namespace dtrain {
namespace {

constexpr std::ptrdiff_t kMostParts = 16'384;  // of a run whose workers change all the time

}  // namespace

void StepNumbers::begin_at(double epoch, double step, double before) { parts_ = {{epoch, before - step, step, 0}}; }

double StepNumbers::add(double epoch, double step, double steps, std::uint32_t begins) {
  const Part* const known = part_of(epoch);
  const double before = known ? known->before_epoch(epoch) : epoch * steps;
  const bool goes_on = known && known == &parts_.back();
  if (goes_on && known->epoch == epoch && known->begins == begins) {
    parts_.back().steps = steps;
  } else if (!goes_on || known->steps != steps) {
    append({epoch, before, steps, begins});
  }
  return before + step + 1;
}

double StepNumbers::last_of(double epoch) const {
  if (parts_.empty()) return 0;
  const Part* const known = part_of(epoch);
  return known ? known->before_epoch(epoch + 1) : (epoch + 1) * parts_.front().steps;
}

StepNumbers StepNumbers::as_of(std::size_t begins) const {
  StepNumbers numbers;
  std::ranges::copy_if(parts_, std::back_inserter(numbers.parts_),
                       [begins](const Part& part) { return part.begins <= begins; });
  return numbers;
}

// The newest one counts: after a resume, the parts before it say what its own first epochs follow on.
const StepNumbers::Part* StepNumbers::part_of(double epoch) const {
  const auto found =
      std::find_if(parts_.rbegin(), parts_.rend(), [&](const Part& part) { return part.epoch <= epoch; });
  return found == parts_.rend() ? nullptr : &*found;
}

void StepNumbers::append(const Part& part) {
  if (std::ssize(parts_) == kMostParts) parts_.erase(parts_.begin(), parts_.begin() + kMostParts / 2);
  parts_.push_back(part);
}

}  // namespace dtrain
