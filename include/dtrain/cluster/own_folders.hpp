// ~/.dtrain/clusters/NAME: what this user knows of each cluster.
#pragma once

#include <string>

#include <dtrain/base/files.hpp>

namespace dtrain::cluster {

Path clusters_of_user();
// Makes the cluster's folder there, which others may only read whatever the umask is, and returns it.
Path make_folder_of_cluster(const std::string& cluster);

}  // namespace dtrain::cluster
