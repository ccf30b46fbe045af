#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/data/loader.hpp>

namespace dtrain::data {

namespace {

constexpr std::size_t kBlocksMixed = 16;

void shuffle(std::span<std::uint32_t> order, RandomStream& random) {
  for (auto left = static_cast<std::uint32_t>(order.size()); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
}

std::vector<std::uint32_t> counted(std::uint32_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::uint32_t epoch, std::uint32_t count,
                                       std::uint32_t block) {
  RandomStream random(seed, RandomUse::order, epoch, 0);
  if (block == 0 || block >= count) {
    std::vector<std::uint32_t> order = counted(count);
    shuffle(order, random);
    return order;
  }
  std::vector<std::uint32_t> blocks = counted((count + block - 1) / block), order;
  shuffle(blocks, random);
  order.reserve(count);
  for (const std::uint32_t number : blocks) {
    const std::uint32_t end = std::min<std::uint64_t>(count, (number + std::uint64_t{1}) * block);
    for (std::uint32_t position = number * block; position < end; ++position) order.push_back(position);
  }
  const std::size_t mixed = kBlocksMixed * block;
  for (std::size_t first = 0; first < order.size(); first += mixed) {
    shuffle(std::span(order).subspan(first, std::min(mixed, order.size() - first)), random);
  }
  return order;
}

EpochOrder balanced_order(std::uint64_t seed, std::uint32_t epoch, std::span<const std::int32_t> labels) {
  RandomStream random(seed, RandomUse::balance, epoch, 0);
  std::map<std::int32_t, std::vector<std::uint32_t>> by_label;
  for (std::uint32_t i = 0; i < labels.size(); ++i) by_label[labels[i]].push_back(i);
  std::vector<std::vector<std::uint32_t>> classes;
  for (auto& [label, records] : by_label) classes.push_back(std::move(records));
  std::vector<std::uint32_t> turns = counted(static_cast<std::uint32_t>(classes.size()));
  shuffle(turns, random);  // the first of them have one more

  EpochOrder sorted;
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    std::vector<std::uint32_t>& records = classes[turns[turn]];
    const std::size_t wanted = labels.size() / turns.size() + (turn < labels.size() % turns.size() ? 1 : 0);
    for (std::size_t i = 0; i < wanted; ++i) {
      if (i % records.size() == 0) shuffle(records, random);
      sorted.records.push_back(records[i % records.size()]);
      sorted.copies.push_back(static_cast<std::uint32_t>(i / records.size()));
    }
  }
  std::vector<std::uint32_t> places = counted(static_cast<std::uint32_t>(labels.size()));
  shuffle(places, random);
  EpochOrder order;
  for (const std::uint32_t place : places) {
    order.records.push_back(sorted.records[place]);
    order.copies.push_back(sorted.copies[place]);
  }
  return order;
}

EpochOrder repeated(EpochOrder order, int times) {
  if (times == 1) return order;
  const auto several = static_cast<std::uint32_t>(times);
  EpochOrder all;
  for (std::uint32_t i = 0; i < order.records.size(); ++i) {
    all.records.push_back(order.records[i / several]);
    all.copies.push_back((order.copies.empty() ? 0 : order.copies[i / several] * several) + i % several);
  }
  return all;
}

EpochOrder grouped(const EpochOrder& order, std::span<const std::uint8_t> groups, int batch) {
  DTRAIN_CHECK(order.copies.empty() && batch > 0, "records that come once are grouped");
  std::vector<std::vector<std::uint32_t>> waiting;
  EpochOrder result;
  result.records.reserve(order.records.size());
  const auto flush = [&](std::vector<std::uint32_t>& records) {
    result.records.insert(result.records.end(), records.begin(), records.end());
    records.clear();
  };
  for (const std::uint32_t record : order.records) {
    const std::size_t group = groups[record];
    if (group >= waiting.size()) waiting.resize(group + 1);
    waiting[group].push_back(record);
    if (std::ssize(waiting[group]) == batch) flush(waiting[group]);
  }
  for (std::vector<std::uint32_t>& rest : waiting) flush(rest);
  return result;
}

}  // namespace dtrain::data
