#include "set_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

constexpr const char* kRecords = ".rec";
// What stands beside the records.
constexpr std::array<const char*, 2> kCompanions{".idx", ".lst"};

Path real_path(const Path& file) {
  std::error_code error;
  Path real = std::filesystem::weakly_canonical(file, error);
  return error ? file : real;
}

void refuse_if_among(const Path& rec, const char* ending, const std::set<Path>& sources, const char* fate) {
  const Path file = Path(rec).replace_extension(ending);
  if (!sources.contains(real_path(file))) return;
  throw UsageError(fmt::format("{}: the pictures come from this file, which the new set would {}", file.string(), fate),
                   "choose another setting 'out'");
}

}  // namespace

std::vector<Path> not_among(const std::vector<Shard>& shards, std::vector<Path> files) {
  std::erase_if(files, [&](const Path& file) {
    return std::ranges::any_of(shards, [&](const Shard& shard) { return shard.rec.filename() == file.filename(); });
  });
  return files;
}

void refuse_to_replace_sources(const std::vector<Shard>& shards, const std::vector<Path>& left_over,
                               const std::vector<Path>& sources) {
  std::set<Path> real;
  for (const Path& source : sources) real.insert(real_path(source));
  for (const Shard& shard : shards) {
    if (shards.size() > 1) refuse_if_among(shard.rec, kRecords, real, "write over");
    for (const char* ending : kCompanions) refuse_if_among(shard.rec, ending, real, "write over");
  }
  for (const Path& rec : left_over) {
    refuse_if_among(rec, kRecords, real, "remove");
    for (const char* ending : kCompanions) refuse_if_among(rec, ending, real, "remove");
  }
}

void refuse_to_overwrite(const std::vector<Shard>& shards, const std::set<Path>& own) {
  constexpr const char* kHint = "setting 'force' writes over it; or choose another setting 'out'";
  for (const Shard& shard : shards) {
    if (std::filesystem::exists(shard.rec)) {
      throw UsageError(shard.rec.string() +
                           ": is there already, made from other pictures, with other options or "
                           "with other names of classes",
                       kHint);
    }
    if (own.contains(shard.rec)) continue;
    for (const char* ending : kCompanions) {
      const Path file = Path(shard.rec).replace_extension(ending);
      if (!std::filesystem::exists(file)) continue;
      throw UsageError(fmt::format("{}: is there already, without the records of a set beside it", file.string()),
                       kHint);
    }
  }
}

bool has_companions(const Path& rec) {
  return std::ranges::all_of(
      kCompanions, [&](const char* ending) { return std::filesystem::exists(Path(rec).replace_extension(ending)); });
}

void refuse_to_leave(const std::vector<Path>& left_over) {
  if (left_over.empty()) return;
  throw UsageError(left_over.front().string() +
                       ": is there already, of an earlier set of this prefix, and is no file of the new one",
                   "setting 'force' removes it; or choose another setting 'out'");
}

void remove_set_file(const Path& rec) {
  const auto remove = [&](const char* ending) {
    const Path file = Path(rec).replace_extension(ending);
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error)
      throw Error(fmt::format("{}: cannot remove this file of an earlier set: {}", file.string(), error.message()));
  };
  // The records go last: where that is interrupted, the next run finds by them what is left.
  std::ranges::for_each(kCompanions, remove);
  remove(kRecords);
}

}  // namespace dtrain::data
