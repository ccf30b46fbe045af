// Types of machines that count as several workers.
#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/spec.hpp>

namespace dtrain::cluster {
namespace {

int weight_in(const std::string& word, const std::string& text) {
  const auto number = parse_integer(text);
  if (number && *number >= 1 && *number <= kMostWeight) return static_cast<int>(*number);
  throw UsageError(
      fmt::format("'{}': '{}' is no weight", word, text),
      fmt::format("a number from 1 to {}: as how many workers a machine of that type counts", kMostWeight));
}

}  // namespace

void set_worker_types(Spec& spec, const std::string& text) {
  spec.instance_types.clear();
  spec.weights.clear();
  for (const std::string& word : split(text, ',')) {
    const std::size_t colon = word.find(':');
    const std::string& type = spec.instance_types.emplace_back(word.substr(0, colon));
    if (colon == word.npos) continue;
    const int weight = weight_in(word, word.substr(colon + 1));
    if (weight > 1) spec.weights[type] = weight;
  }
}

std::string worker_types_text(const Spec& spec) {
  std::vector<std::string> words;
  for (const std::string& type : spec.instance_types) {
    const int weight = weight_of(spec, type);
    words.push_back(weight == 1 ? type : fmt::format("{}:{}", type, weight));
  }
  return join(words, ",");
}

int weight_of(const Spec& spec, const std::string& type) {
  const auto found = spec.weights.find(type);
  return found == spec.weights.end() ? 1 : found->second;
}

int machines_for(int workers, int weight) { return (workers + weight - 1) / weight; }

}  // namespace dtrain::cluster
