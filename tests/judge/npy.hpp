// NumPy's .npy format, version 1.0 (numpy.lib.format), little-endian and C order. For tests only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::testing {

void write_npy(const Path& path, const std::vector<std::int64_t>& shape, std::span<const float> values);
void write_npy(const Path& path, const std::vector<std::int64_t>& shape, std::span<const std::int32_t> values);
void write_npy(const Path& path, const std::vector<std::int64_t>& shape, std::span<const std::uint32_t> values);

}  // namespace dtrain::testing
