// What this program was built of, and what it computes with on this machine.
#pragma once

#include <dtrain/base/json.hpp>

namespace dtrain::doctor {

// {"version", "commit": null in a tree under development, "compiler", "build", "cpu_kernels", "gpus", "libraries":
// {name: version at the build}}. Looks for GPUs, which takes a while where there are some.
Json build_facts();

}  // namespace dtrain::doctor
