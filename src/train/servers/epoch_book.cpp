#include "epoch_book.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

std::uint64_t batch_of(const EpochPlan& plan) { return static_cast<std::uint64_t>(plan.global_batch); }

std::uint64_t first_of(const BookPlan& plan) { return plan.position / batch_of(plan.epoch); }

// A run that was resumed from another training may stand amid a batch. Then shared batches go on from there, as the
// steps of a training without servers do; else the rest of that batch is one of its own.
std::uint64_t end_of(const BookPlan& plan, std::uint64_t number) {
  const std::uint64_t batch = batch_of(plan.epoch), shift = plan.shares() ? plan.position % batch : 0;
  return std::min(plan.epoch.samples, (number + 1) * batch + shift);
}

}  // namespace

data::Slice EpochBook::slice(const BookPlan& plan, std::uint64_t number) {
  const std::uint64_t first = number == first_of(plan) ? plan.position : end_of(plan, number - 1);
  return {first, static_cast<int>(end_of(plan, number) - first)};
}

EpochBook::EpochBook(const BookPlan& plan)
    : plan_(plan),
      next_(static_cast<std::size_t>(plan.ranks)),
      clocks_(static_cast<std::size_t>(plan.ranks)),
      taken_(clocks_) {
  for (std::uint64_t number = first_of(plan); slice(plan, number).count > 0; ++number) {
    if (!plan.ahead.contains(number)) todo_.push_back({number, slice(plan, number)});
  }
  if (todo_.size() > plan.most) todo_.resize(plan.most);
}

std::optional<Ticket> EpochBook::take(int rank) {
  std::size_t& next = next_[plan_.shares() ? static_cast<std::size_t>(rank) : 0];
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
  if (plan_.shares()) {
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
  Standing standing{.position = plan.position, .ahead = plan.ahead};
  standing.ahead.insert(done.begin(), done.end());
  for (std::uint64_t number = first_of(plan); standing.ahead.erase(number) > 0; ++number) {
    standing.position = end_of(plan, number);
    ++standing.batches;
  }
  return standing;
}

}  // namespace dtrain::train
