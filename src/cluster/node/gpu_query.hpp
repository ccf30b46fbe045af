// The fields that nvidia-smi is asked for.
#pragma once

#include <array>
#include <string_view>

namespace dtrain::cluster {

inline constexpr std::array<std::string_view, 6> kGpuFields{
    "index", "name", "driver_version", "temperature.gpu", "memory.total", "ecc.errors.uncorrected.volatile.total"};

}  // namespace dtrain::cluster
