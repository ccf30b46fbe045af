// The page as one file with the runs in it, for people who have neither this program nor the folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::board {

struct ExportResult {
  std::size_t runs = 0;
  std::uint64_t bytes = 0;
};

// Throws UsageError where the folders hold no run, or `out` is there and is no such page.
ExportResult export_page(const std::vector<std::string>& folders, const Path& out);

// One script of all modules, without import and export: their names at the top level differ.
std::string joined_modules();

}  // namespace dtrain::board
