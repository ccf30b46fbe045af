#include "power_off.hpp"

#include <dtrain/base/process.hpp>

namespace dtrain::cluster {

void power_off_machine() {
  Spawn child = spawn_of({"/bin/sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; shutdown -h now || poweroff -f"});
  child.environment = own_environment();
  spawn(child);
}

}  // namespace dtrain::cluster
