// The fields that nvidia-smi is asked for.
#pragma once

#include <array>
#include <string_view>

namespace dtrain::cluster {

inline constexpr std::array<std::string_view, 6> kGpuFields{
    "index", "name", "driver_version", "temperature.gpu", "memory.total", "ecc.errors.uncorrected.volatile.total"};
// After those, where the driver knows them: what is left of an error that no counter shows, such as one of Xid 119.
inline constexpr std::array<std::string_view, 2> kErrorFields{"remapped_rows.failure", "gpu_recovery_action"};

}  // namespace dtrain::cluster
