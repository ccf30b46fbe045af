// What to do where records are not there.
#pragma once

#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::config {

// The hint for a file of this machine. For "data/cifar10_train.rec", where nothing of that set is there, it gives
// `dtrain data prepare cifar10 --out data`. Other names count as mistyped: it names the nearest record file of the
// folder, or all of them.
std::string hint_of_missing_records(const Path& file);

}  // namespace dtrain::config
