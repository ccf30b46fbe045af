#include "epoch_book.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

std::uint64_t batch_of(const EpochPlan& plan) { return static_cast<std::uint64_t>(plan.global_batch); }

std::uint64_t number_at(const EpochPlan& plan, std::uint64_t position) {
  return (position + batch_of(plan) - 1) / batch_of(plan);
}

}  // namespace

Ticket EpochBook::ticket(const EpochPlan& plan, std::uint64_t number) {
  const std::uint64_t first = number * batch_of(plan);
  return {number, {first, plan.step_size(first)}};
}

// A run that was resumed from a training without servers may stand amid a batch: its rest is a batch of its own.
EpochBook::EpochBook(const BookPlan& plan)
    : plan_(plan),
      next_(static_cast<std::size_t>(plan.ranks)),
      clocks_(static_cast<std::size_t>(plan.ranks)),
      taken_(clocks_) {
  const std::uint64_t batch = batch_of(plan.epoch), rest = plan.position % batch;
  if (rest != 0) {
    const std::uint64_t end = std::min(plan.epoch.samples, plan.position - rest + batch);
    todo_.push_back({plan.position / batch, {plan.position, static_cast<int>(end - plan.position)}});
  }
  for (std::uint64_t number = number_at(plan.epoch, plan.position); number * batch < plan.epoch.samples; ++number) {
    if (!plan.ahead.contains(number)) todo_.push_back(ticket(plan.epoch, number));
  }
  if (todo_.size() > plan.most) todo_.resize(plan.most);
}

std::optional<Ticket> EpochBook::take(int rank) {
  std::size_t& next = next_[shares() ? static_cast<std::size_t>(rank) : 0];
  if (next < todo_.size()) {
    ++taken_[static_cast<std::size_t>(rank)];
    return todo_[next++];
  }
  idle_.insert(rank);
  return std::nullopt;
}

bool EpochBook::may_begin(int rank) const {
  if (!plan_.max_staleness) return true;
  const std::uint64_t mine = clocks_[static_cast<std::size_t>(rank)];
  for (int other = 0; other < plan_.ranks; ++other) {
    const std::uint64_t its = clocks_[static_cast<std::size_t>(other)];
    const bool has_steps = !idle_.contains(other) || its < taken_[static_cast<std::size_t>(other)];
    if (has_steps && mine > its + static_cast<std::uint64_t>(*plan_.max_staleness)) return false;
  }
  return true;
}

void EpochBook::pushed(int rank) { ++clocks_[static_cast<std::size_t>(rank)]; }

void EpochBook::done(int rank, std::uint64_t number) {
  if (shares()) {
    std::set<int>& ranks = by_[number];
    ranks.insert(rank);
    if (std::ssize(ranks) < plan_.ranks) return;
    by_.erase(number);
  }
  done_.insert(number);
}

void EpochBook::stop() {
  std::size_t end = *std::ranges::max_element(next_);
  const std::uint64_t last = plan_.ahead.empty() ? 0 : *plan_.ahead.rbegin();
  while (end < todo_.size() && !plan_.ahead.empty() && todo_[end].number < last) ++end;
  todo_.resize(std::min(end, todo_.size()));
}

EpochBook::Standing EpochBook::standing(const BookPlan& plan, const std::set<std::uint64_t>& done) {
  Standing standing{plan.position, plan.ahead};
  standing.ahead.insert(done.begin(), done.end());
  const std::uint64_t batch = batch_of(plan.epoch);
  while (standing.position < plan.epoch.samples && standing.ahead.erase(standing.position / batch) > 0) {
    standing.position = std::min(plan.epoch.samples, (standing.position / batch + 1) * batch);
  }
  return standing;
}

}  // namespace dtrain::train
