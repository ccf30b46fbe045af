// Hosts become members of a registered cluster: each is looked at, and the head must reach it.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

#include "site.hpp"

namespace dtrain::cli {

class Admission {
 public:
  // `cluster`: as far as it is known; its head is the first host. The site and the reporter must outlive this.
  // `yes`: the user agrees to a key of the cluster on the hosts.
  Admission(Site& site, cluster::RegisteredCluster cluster, bool yes, Reporter& reporter);
  // Removes the file that place() made.
  ~Admission();
  Admission(const Admission&) = delete;

  // The head makes the cluster's folder. Fills in `shared` and `folder`.
  void place();
  // Makes `fresh`, hosts of the cluster, members: refuses those on which no job can run, or that are a host of the
  // cluster already, and sees to it that the head can log in to them. Throws UsageError or RemoteError that names the
  // hosts; none of them is a member then.
  void admit(const std::vector<cluster::RegisteredHost>& fresh);
  // Undoes that.
  void dismiss(const std::vector<cluster::RegisteredHost>& fresh);
  // Whether there was no such cluster before; after place().
  bool is_new() const { return is_new_; }
  const cluster::RegisteredCluster& cluster() const { return cluster_; }

 private:
  void refuse_unfit(const std::vector<SeenHost>& fresh) const;
  void refuse_twins(const std::vector<SeenHost>& seen) const;
  void warn_of_clocks(const std::vector<SeenHost>& seen) const;
  std::vector<std::string> not_reached(const std::vector<cluster::RegisteredHost>& fresh);
  void choose_key(const std::vector<cluster::RegisteredHost>& fresh);

  Site& site_;
  cluster::RegisteredCluster cluster_;
  const bool yes_;
  Reporter& reporter_;
  std::string probe_{}, key_{};
  bool is_new_ = false;
};

}  // namespace dtrain::cli
