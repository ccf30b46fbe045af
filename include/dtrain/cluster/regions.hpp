// Clusters that may be in one of several regions, which `up` tries one after the other while there is no capacity. A
// cluster is in one region; what an interrupted `up` left may be in another.
//
// Tags say in each region what is there. Which regions to ask stands in a file of the user (in ~/.dtrain/clusters):
// those in which `up` is to make something, before it does, so that what an interrupted `up` left is found. An `up`
// elsewhere leaves them there while they may have something. Without the file, the user names the regions again.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>
#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::cluster {

// The names in "us-east-1,eu-west-1"; none for an empty text. Throws UsageError for a text that is no such list.
std::vector<std::string> regions_in(const std::string& text);

// Throws UsageError for an option that binds the cluster to one region. Needs no account.
void refuse_ties(const Spec& spec);
// Throws UsageError for a file system that an earlier cluster of this name left in the region: the cluster would miss
// its content elsewhere. `fleet`: what is there of the cluster.
void refuse_kept_storage(const Account& account, const Spec& spec, const Fleet& fleet);

// Whether an `up` began the cluster and did not end: it has a group, and nothing says what is to be kept.
bool is_only_begun(const Fleet& fleet);
// Whether an `up` that did not end made it, for the group of this fleet: no job has written to it. What AWS counts in
// one of EFS is hours old, so it proves content, and never that there is none.
bool is_empty(const FileSystem& system, const Fleet& fleet);
// Whether another `up` has finished the cluster that `own` began, or has started machines of it. `ended`: machines that
// the `up` of `own` has ended, which AWS may still show. `has_written`: it wrote the wish itself.
bool is_of_others(const Fleet& now, const Fleet& own, const std::set<std::string>& ended, bool has_written);

// The region that has the cluster; else the first one that has what an interrupted `up` left; empty: none has anything.
std::string region_with(const std::vector<std::string>& regions, const std::function<Fleet(const std::string&)>& read);

// Whether the region lets this user do nothing there: an organization denies it, or the account has not enabled it.
bool refuses_user(const net::AwsError& problem);
// The same among regions that the user did not name. It passes over one that refuses the user, and gives `note` its
// answer. Throws RemoteError where a remembered one refuses and none of the others has anything.
std::string answering_region_with(const std::vector<std::string>& regions, const std::vector<std::string>& remembered,
                                  const std::function<Fleet(const std::string&)>& read,
                                  const std::function<void(const std::string&)>& note);

// The regions in which `up` of this user has made the cluster, or may have made something of it.
std::vector<std::string> remembered_regions(const std::string& cluster);
// No regions: forgets them. `account`: the number of that in which `up` makes something; empty: it makes nothing.
void remember_regions(const std::string& cluster, const std::vector<std::string>& regions,
                      const std::string& account = {});
// The number of the only account in which something of the cluster may be in this region. Empty: it is not known, or
// there are several.
std::string remembered_account(const std::string& cluster, const std::string& region);
// The regions in which a command that names none looks for the cluster, in this order: the user's usual one, then those
// that are remembered. None: nothing is remembered, and it looks in the usual one.
std::vector<std::string> regions_to_ask(const std::string& cluster, const net::AwsSettings& settings);
// The same of all clusters, sorted, each once.
std::vector<std::string> all_remembered_regions();

}  // namespace dtrain::cluster
