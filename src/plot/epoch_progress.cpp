#include "epoch_progress.hpp"

#include <algorithm>
#include <iterator>

namespace dtrain::plot {
namespace {

constexpr std::ptrdiff_t kMostChanges = 16'384;  // of a run whose workers change all the time

}  // namespace

double EpochProgress::Part::share_behind(double step) const {
  const double left = steps - from;
  const double part = left > 0 ? std::clamp((step + 1 - from) / left, 0.0, 1.0) : 1.0;
  return part < 1 ? done + (1 - done) * part : 1.0;
}

double EpochProgress::add(double epoch, double step, double steps, std::uint32_t begins) {
  Part part{.begins = begins, .epoch = epoch, .from = 0, .done = 0, .steps = steps};
  const bool goes_on = last_ && last_->epoch == epoch && last_->begins == begins;
  if (const Part* const known = part_of(epoch, step, begins); known && known->steps == steps) {
    part = *known;
  } else if (last_ && last_->epoch == epoch && last_->steps != steps) {
    part.from = std::min(last_->step + 1, step);
    part.done = part.from > last_->step ? last_->share : share_before(part.from);
    append(part);
  }
  double share = part.share_behind(step);
  if (goes_on) share = std::max(share, last_->share);
  last_ = Place{.begins = begins, .epoch = epoch, .step = step, .steps = steps, .share = share};
  return epoch + share;
}

// Of the epoch of the last step, as it was trained until then. Without a part, all its steps were equal.
double EpochProgress::share_before(double step) const {
  if (const Part* const part = part_of(last_->epoch, step, last_->begins)) return part->share_behind(step - 1);
  const auto first = std::ranges::find_if(parts_, [&](const Part& part) {
    return part.begins == last_->begins && part.epoch == last_->epoch && part.from > 0;
  });
  return first != parts_.end() ? first->done * step / first->from : std::clamp(step / last_->steps, 0.0, 1.0);
}

EpochProgress EpochProgress::as_of(std::size_t begins) const {
  EpochProgress progress;
  std::ranges::copy_if(parts_, std::back_inserter(progress.parts_),
                       [begins](const Part& part) { return part.begins <= begins; });
  return progress;
}

const EpochProgress::Part* EpochProgress::part_of(double epoch, double step, std::uint32_t begins) const {
  const auto found = std::find_if(parts_.rbegin(), parts_.rend(), [&](const Part& part) {
    return part.begins == begins && part.epoch == epoch && part.from <= step;
  });
  return found == parts_.rend() ? nullptr : &*found;
}

void EpochProgress::append(const Part& part) {
  if (std::ssize(parts_) == kMostChanges) parts_.erase(parts_.begin(), parts_.begin() + kMostChanges / 2);
  parts_.push_back(part);
}

}  // namespace dtrain::plot
