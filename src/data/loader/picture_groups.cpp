#include "picture_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/parallel.hpp>

namespace dtrain::data {
namespace {

std::vector<std::uint8_t> groups_of_records(const RecordSet& set, std::uint32_t count,
                                            const std::vector<ScaledSize>& groups) {
  constexpr std::size_t kAtOnce = 256;
  std::vector<std::uint8_t> of(count);
  for_each_in_parallel((count + kAtOnce - 1) / kAtOnce, [&](std::size_t block) {
    Record record;
    Image scratch;
    for (std::size_t i = block * kAtOnce; i < std::min<std::size_t>(count, (block + 1) * kAtOnce); ++i) {
      try {
        set.read(i, record);
        const ScaledSize size = picture_size(record, scratch);
        of[i] = static_cast<std::uint8_t>(group_for(size.height, size.width, groups));
      } catch (const DataError&) {
      }
    }
  });
  return of;
}

void require_pictures(const RecordSet& set, const std::vector<PictureGroup>& groups) {
  for (const PictureGroup& group : groups) {
    if (group.samples > 0) continue;
    throw SettingError("aspect-groups",
                       fmt::format("no picture of {} belongs to the group {}x{}: all become larger in another one",
                                   set.name(), group.shape.h, group.shape.w),
                       "leave this group out");
  }
}

}  // namespace

PictureGroups group_pictures(const RecordSet& set, std::uint32_t count, const LoaderOptions& options) {
  PictureGroups result;
  if (!options.in_groups()) return result;
  DTRAIN_CHECK(!options.balanced && options.repeats == 1, "pictures in groups come once in an epoch");
  const std::vector<ScaledSize>& sizes = options.detection->groups;
  DTRAIN_CHECK(sizes.size() <= UINT8_MAX, "groups are few");
  result.of = groups_of_records(set, count, sizes);
  for (const ScaledSize& size : sizes) result.groups.push_back({{options.shape.c, size.height, size.width}});
  for (const std::uint8_t group : result.of) ++result.groups[group].samples;
  if (options.shuffle) require_pictures(set, result.groups);
  return result;
}

}  // namespace dtrain::data
