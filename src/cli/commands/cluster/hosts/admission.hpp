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
  // cluster already, and sees to it that the head can log in to them. Members of before that do not answer, the head
  // apart, are only warned of. Throws UsageError or RemoteError that names the hosts; those that were no members before
  // are none then.
  void admit(const std::vector<cluster::RegisteredHost>& fresh);
  // Undoes that. Hosts that were members before stay members.
  void dismiss(const std::vector<cluster::RegisteredHost>& fresh);
  const cluster::RegisteredCluster& cluster() const { return cluster_; }

 private:
  bool was_member(const std::string& host) const;
  // Whether the host may stay away.
  bool may_be_away(const std::string& host) const;
  std::vector<cluster::RegisteredHost> present(const std::vector<cluster::RegisteredHost>& fresh,
                                               const std::vector<SeenHost>& seen) const;
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
  std::vector<cluster::RegisteredHost> before_{};  // the hosts of the cluster as it was; empty: there was none
};

}  // namespace dtrain::cli
