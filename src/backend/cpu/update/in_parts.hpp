// Work that the threads of an executable divide among themselves.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace dtrain::backend::cpu {

// Runs work(part, parts) for every part, side by side or not.
using InParts = std::function<void(const std::function<void(int part, int parts)>&)>;

// Calls work(thing, part) for each, by whichever part is free.
template <typename Things, typename Work>
void share(Things& things, const InParts& in_parts, Work work) {
  std::atomic<std::size_t> next{0};
  in_parts([&](int part, int) {
    for (std::size_t k = next.fetch_add(1); k < things.size(); k = next.fetch_add(1)) work(things[k], part);
  });
}

}  // namespace dtrain::backend::cpu
