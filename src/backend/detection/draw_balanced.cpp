#include <algorithm>
#include <utility>

#include "draw_words.hpp"
#include "match.hpp"
#include "regions.hpp"

namespace dtrain::backend {
namespace {

// The `most` items with the lowest words, in the order of the items.
std::vector<std::size_t> lowest(const std::vector<std::size_t>& items, std::span<const std::uint32_t> words,
                                std::size_t most) {
  std::vector<std::size_t> kept = items;
  if (kept.size() <= most) return kept;
  std::ranges::sort(kept, {}, [&](std::size_t item) { return std::pair(words[item], item); });
  kept.resize(most);
  std::ranges::sort(kept);
  return kept;
}

std::vector<std::uint32_t> words_of(const RegionDraw& draw, std::size_t count) {
  std::vector<std::uint32_t> words;
  for (std::uint32_t block = 0; words.size() < count; ++block) {
    for (const std::uint32_t word :
         draw_words(block, static_cast<std::uint32_t>(draw.node), draw.sample, draw.key.epoch,
                    static_cast<std::uint32_t>(draw.key.seed), static_cast<std::uint32_t>(draw.key.seed >> 32))) {
      words.push_back(word);
    }
  }
  return words;
}

}  // namespace

Drawn draw_balanced(std::span<const std::int32_t> matches, std::size_t objects, std::size_t all,
                    const RegionDraw& draw) {
  Drawn drawn;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] >= 0) drawn.objects.push_back(i);
    if (matches[i] == kBackground) drawn.background.push_back(i);
  }
  const std::vector<std::uint32_t> words = words_of(draw, matches.size());
  drawn.objects = lowest(drawn.objects, words, objects);
  drawn.background = lowest(drawn.background, words, all - drawn.objects.size());
  return drawn;
}

}  // namespace dtrain::backend
