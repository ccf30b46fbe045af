#include <dtrain/base/environment.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/cluster/own_folders.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kBelowHome = ".dtrain/clusters";

Path home_folder() { return environment("HOME").value_or("/"); }

}  // namespace

Path clusters_of_user() { return home_folder() / kBelowHome; }

Path make_folder_of_cluster(const std::string& cluster) {
  return make_own_folders(home_folder(), Path(kBelowHome) / cluster);
}

}  // namespace dtrain::cluster
