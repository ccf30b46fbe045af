#include <dtrain/cluster/account.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <set>
#include <tuple>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/plan.hpp>
#include <dtrain/net/http_exchange.hpp>

#include "ec2_fields.hpp"
#include "file_systems.hpp"
#include "head_role.hpp"
#include "images.hpp"
#include "plan/subnet_choice.hpp"
#include "resources.hpp"

namespace dtrain::cluster {
namespace {

constexpr const char* kAddressService = "https://checkip.amazonaws.com/";
constexpr std::chrono::seconds kAddressPatience{5};

struct Quota {
  const char *name, *code;
};
constexpr Quota kQuotaCodes[] = {{"standard", "L-1216C47A"},   {"gpu-g", "L-DB2E81BA"},
                                 {"gpu-p", "L-417A185B"},      {"spot-standard", "L-34B43A08"},
                                 {"spot-gpu-g", "L-3819A6DF"}, {"spot-gpu-p", "L-7212CCBC"},
                                 {"spot-gpu-p5", "L-C4BD4855"}};

std::string default_vpc(net::AwsCalls& aws) {
  const auto found = aws.query_all(net::kEc2, "DescribeVpcs", filtered({{"isDefault", "true"}}), "vpcSet");
  if (!found.empty()) return found.front().value("vpcId");
  throw UsageError(fmt::format("region {} of this account has no default VPC", aws.region()),
                   "give setting 'vpc' or setting 'subnet', or run: aws ec2 create-default-vpc");
}

// Local Zones and Wavelength Zones, such as us-east-1-bos-1a, have few types and no EFS; nodes need IPv4 addresses.
bool suits_nodes(const net::Element& subnet, const std::string& region) {
  return !subnet.value("availabilityZone").starts_with(region + "-") && subnet.value("ipv6Native") != "true";
}

std::optional<int> address_count(const net::Element& subnet) {
  const auto count = parse_integer(subnet.value("availableIpAddressCount"));
  return count ? std::optional(static_cast<int>(*count)) : std::nullopt;
}

std::vector<Subnet> read_subnets(net::AwsCalls& aws, const Spec& spec, const std::string& cluster) {
  Fields fields;
  if (!spec.subnet.empty()) {
    add_list(fields, "SubnetId", {spec.subnet});
  } else {
    fields = filtered({{"vpc-id", spec.vpc.empty() ? default_vpc(aws) : spec.vpc}});
  }
  std::vector<Subnet> all;
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeSubnets", fields, "subnetSet")) {
    if (spec.subnet.empty() && !suits_nodes(one, aws.region())) continue;
    all.push_back({one.value("subnetId"), one.value("vpcId"), one.value("availabilityZone"),
                   one.value("mapPublicIpOnLaunch") == "true", address_count(one), one.value("cidrBlock")});
  }
  if (all.empty()) {
    throw UsageError("the VPC has no subnets", "give setting 'vpc' or setting 'subnet' with one that has");
  }
  const SubnetChoice choice(spec, std::move(all));
  const bool matters = choice.is_open() && !cluster.empty();  // without a name there is no cluster yet
  return choice.for_nodes_of(matters ? read_fleet(aws, cluster) : Fleet{});
}

using Offers = std::vector<std::pair<std::string, std::string>>;  // types, each with a zone

// EC2 only says of a misspelt type that it does not exist.
void check_offered(net::AwsCalls& aws, const std::vector<std::string>& names, const Offers& offers) {
  for (const std::string& name : names) {
    if (std::ranges::find(offers, name, &Offers::value_type::first) != offers.end()) continue;
    std::set<std::string> all;
    std::ignore = attempt([&] {
      for (const auto& [type, zone] : read_offers(aws, {})) all.insert(type);
    });
    const auto near = nearest_name(name, std::vector(all.begin(), all.end()));
    throw UsageError(fmt::format("region {} has no instance type {}", aws.region(), name),
                     fmt::format("{}dtrain cluster types setting 'region' {} lists those that it has",
                                 near ? fmt::format("did you mean {}? ", *near) : "", aws.region()));
  }
}

void check_types(const Account& account, const Spec& spec) {
  for (const std::string& name : types_of(spec)) {
    const auto type = account.types.find(name);
    if (type->second.architecture != "x86_64") {
      throw UsageError(
          fmt::format("{} is of architecture {}, and dtrain runs on x86_64", name, type->second.architecture),
          "choose another setting 'instance-type'");
    }
    if (spec.efa && !type->second.efa) {
      throw UsageError(fmt::format("{} has no EFA", name),
                       "leave setting 'efa' out, or choose another setting 'instance-type'");
    }
  }
}

CapacityReservation read_reservation(net::AwsCalls& aws, const std::string& id) {
  Fields fields;
  add_list(fields, "CapacityReservationId", {id});
  std::vector<net::Element> found;
  try {
    found = aws.query_all(net::kEc2, "DescribeCapacityReservations", fields, "capacityReservationSet");
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::not_found) throw;
  }
  if (found.empty()) {
    throw UsageError(fmt::format("region {} has no capacity reservation {}", aws.region(), id),
                     "aws ec2 describe-capacity-reservations lists those that it has");
  }
  const net::Element& one = found.front();
  const auto count = [&](const char* name) { return static_cast<int>(parse_integer(one.value(name)).value_or(0)); };
  return {.id = id,
          .type = one.value("instanceType"),
          .zone = one.value("availabilityZone"),
          .state = one.value("state"),
          .platform = one.value("instancePlatform"),
          .tenancy = one.value("tenancy"),
          .total = count("totalInstanceCount"),
          .available = count("availableInstanceCount")};
}

// What EC2 would refuse only when machines are started.
void check_reservation(const Account& account, const Spec& spec) {
  const CapacityReservation& reserved = *account.reservation;
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw UsageError(fmt::format("capacity reservation {} {}", reserved.id, why), hint);
  };
  if (reserved.state != "active") refuse(fmt::format("is {}", reserved.state), "choose an active one");
  if (reserved.platform != "Linux/UNIX" || reserved.tenancy != "default") {
    refuse(fmt::format("is for {} with tenancy {}", reserved.platform, reserved.tenancy),
           "nodes need Linux/UNIX with tenancy default");
  }
  if (std::ranges::find(spec.instance_types, reserved.type) == spec.instance_types.end()) {
    refuse(fmt::format("is for {}, and the workers are {}", reserved.type, join(spec.instance_types, " or ")),
           fmt::format("give setting 'instance-type' {}", reserved.type));
  }
  if (std::ranges::none_of(account.subnets, [&](const Subnet& one) { return one.zone == reserved.zone; })) {
    refuse(fmt::format("is in {}, where there is no subnet for the nodes", reserved.zone),
           "give setting 'subnet' with one of that zone");
  }
}

constexpr const char* kAnyKey = "aws kms list-keys and aws kms list-aliases list those of the region";

Json describe_key(net::AwsCalls& aws, const std::string& key) {
  const std::string named = region_of_kms_key(key);
  if (!named.empty() && named != aws.region()) {
    throw UsageError(fmt::format("KMS key {} is in {}, and the cluster in {}", key, named, aws.region()),
                     "a key encrypts in its own region only: give one of that region");
  }
  try {
    return aws.json(net::kKms, "DescribeKey", Json::object({{"KeyId", key}})).at("KeyMetadata");
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem == net::AwsProblem::not_found) {
      throw UsageError(fmt::format("region {} of this account has no KMS key {}", aws.region(), key), kAnyKey);
    }
    if (problem.facts().problem != net::AwsProblem::denied) throw;
    throw net::AwsError(problem.what(),
                        "the policies of the key and of your identity must both allow its use; dtrain cluster "
                        "iam-policy setting 'kms-key' ARN prints the calls",
                        problem.facts());
  }
}

// Why disks cannot be encrypted with this key, and what to do; empty: they can.
struct Refusal {
  std::string why{}, hint{};
};

Refusal refusal_of(const Json& key) {
  if (key.find_text("KeyManager") == "AWS")
    return {"is one that AWS keeps for a service", "give a key of yours, or leave it out"};
  if (const std::string state = key.find_text("KeyState"); state != "Enabled") {
    return {fmt::format("is in state {}", state),
            state == "Disabled" ? "aws kms enable-key makes it usable again"
            : state == "PendingDeletion"
                ? "aws kms cancel-key-deletion and then aws kms enable-key make it usable again"
                : "give a key that is enabled"};
  }
  if (const std::string usage = key.find_text("KeyUsage"); !usage.empty() && usage != "ENCRYPT_DECRYPT") {
    return {fmt::format("is for {}", usage), "give one for ENCRYPT_DECRYPT"};
  }
  if (const std::string kind = key.find_text("KeySpec"); !kind.empty() && kind != "SYMMETRIC_DEFAULT") {
    return {fmt::format("is of kind {}", kind), "disks take symmetric keys, SYMMETRIC_DEFAULT"};
  }
  return {};
}

// The ARN of the user's key of this ARN, alias or id. Throws UsageError for a key that the region does not have, or
// that cannot encrypt disks now: without this, EC2 would end machines just after their start.
std::string read_kms_key(net::AwsCalls& aws, const std::string& key) {
  const Json found = describe_key(aws, key);
  return net::read_answer("kms DescribeKey", [&] {
    std::string arn = found.at("Arn").as_string();
    const Refusal refusal = refusal_of(found);
    if (!refusal.why.empty()) throw UsageError(fmt::format("KMS key {} ({}) {}", key, arn, refusal.why), refusal.hint);
    return arn;
  });
}

// The public address of this machine.
std::string own_source(net::AwsCalls& aws) {
  if (aws.talks_to_another()) return "127.0.0.1/32";  // the endpoint is a stand-in of AWS on this machine or near it
  constexpr const char* kHint = "give setting 'ssh-from' with it, such as 203.0.113.7/32";
  net::HttpAnswer answer;
  try {
    answer = net::exchange_http({.url = kAddressService, .deadline = kAddressPatience, .ca_bundle = aws.ca_bundle()});
  } catch (const RemoteError& error) {
    throw RemoteError(fmt::format("cannot find this machine's public address: {}", error.what()),
                      error.hint().empty() ? kHint : fmt::format("{}; or {}", error.hint(), kHint));
  }
  const std::string address(trim(answer.body));
  if (answer.status == 200 && !address.empty()) return address + (address.find(':') == address.npos ? "/32" : "/128");
  throw RemoteError(
      fmt::format("{} does not return this machine's public address: its status is {}", kAddressService, answer.status),
      kHint);
}

net::Element caller_identity(net::AwsCalls& aws) {
  return aws.query(net::kStsCalls, "GetCallerIdentity", {}).at("GetCallerIdentityResult");
}

void read_identity(net::AwsCalls& aws, Account& account) {
  const net::Element answer = caller_identity(aws);
  account.number = answer.value("Account");
  account.person = answer.value("Arn");
}

// The first ~/.ssh/id_*.pub of a kind that EC2 accepts, as one line; nullopt: there is none.
std::optional<std::string> own_public_key() {
  const std::optional<std::string> home = environment("HOME");
  if (!home) return std::nullopt;
  for (const char* name : {"id_ed25519.pub", "id_rsa.pub"}) {
    const Path file = Path(*home) / ".ssh" / name;
    if (std::filesystem::exists(file)) return std::string(trim(read_file(file)));
  }
  return std::nullopt;
}

void read_key(net::AwsCalls& aws, const Spec& spec, const std::string& cluster, Account& account) {
  account.key = spec.key;
  if (!spec.key.empty()) {
    Fields fields;
    add_list(fields, "KeyName", {spec.key});
    aws.query_all(net::kEc2, "DescribeKeyPairs", fields, "keySet");  // throws for a key pair that does not exist
    return;
  }
  const auto own = own_public_key();
  const auto there = read_key_pairs(aws, std::string("tag:") + tag::kCluster, cluster);
  if (!own) {
    // A watch on another machine starts a lost head again: with the key of the person who made the cluster.
    if (!there.empty()) account.key = there.front().name;
    return;
  }
  const auto same =
      std::ranges::find_if(there, [&](const ImportedKey& one) { return is_same_key(one.public_key, *own); });
  if (there.empty()) {
    account.key = free_key_name(aws, cluster);
    account.public_key = *own;
  } else {
    account.key = same == there.end() ? there.front().name : same->name;
    account.has_users_key = same != there.end();
  }
}

}  // namespace

std::string account_number(net::AwsCalls& aws) { return caller_identity(aws).value("Account"); }

MachineType type_of(const net::Element& found) {
  MachineType type{.name = found.value("instanceType"),
                   .vcpus = static_cast<int>(parse_integer(found.at("vCpuInfo").value("defaultVCpus")).value_or(0)),
                   .efa = found.at("networkInfo").value("efaSupported") == "true",
                   .local_disks = found.value("instanceStorageSupported") == "true"};
  for (const net::Element& gpu : found.at("gpuInfo").list("gpus")) {
    type.gpus += static_cast<int>(parse_integer(gpu.value("count")).value_or(0));
    type.gpu_name = gpu.value("name");
    type.gpu_memory_gib = parse_number(gpu.at("memoryInfo").value("sizeInMiB")).value_or(0) / 1024;
  }
  for (const net::Element& one : found.at("processorInfo").list("supportedArchitectures")) {
    if (type.architecture.empty() || one.text == "x86_64") type.architecture = one.text;
  }
  return type;
}

std::vector<std::pair<std::string, std::string>> read_offers(net::AwsCalls& aws,
                                                             const std::vector<std::string>& names) {
  Fields fields{{"LocationType", "availability-zone"}};
  if (!names.empty()) fields.emplace_back("Filter.1.Name", "instance-type");
  add_list(fields, "Filter.1.Value", names);
  std::vector<std::pair<std::string, std::string>> offers;
  for (const net::Element& one :
       aws.query_all(net::kEc2, "DescribeInstanceTypeOfferings", fields, "instanceTypeOfferingSet")) {
    offers.emplace_back(one.value("instanceType"), one.value("location"));
  }
  return offers;
}

std::map<std::string, double> read_quotas(net::AwsCalls& aws, const std::vector<std::string>& types,
                                          const std::vector<Market>& markets) {
  std::set<std::string> asked;
  for (const Market market : markets) {
    for (const std::string& type : types) asked.insert(quota_of(type, market));
  }
  std::map<std::string, double> quotas;
  for (const Quota& quota : kQuotaCodes) {
    if (!asked.contains(quota.name)) continue;
    try {
      const Json answer =
          aws.json(net::kQuotas, "GetServiceQuota", Json::object({{"ServiceCode", "ec2"}, {"QuotaCode", quota.code}}));
      quotas[quota.name] = answer.at("Quota").at("Value").as_number();
    } catch (const RemoteError&) {
      // the quota is only advice, and many identities may not read quotas
    } catch (const DataError&) {
    }
  }
  return quotas;
}

std::map<std::string, MachineType> read_types(net::AwsCalls& aws, const std::vector<std::string>& names) {
  Fields fields;
  add_list(fields, "InstanceType", names);
  std::map<std::string, MachineType> types;
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeInstanceTypes", fields, "instanceTypeSet")) {
    MachineType type = type_of(one);
    types[type.name] = std::move(type);
  }
  return types;
}

Account read_account(net::AwsCalls& aws, const Spec& spec, const std::string& cluster) {
  const std::vector<std::string> names = types_of(spec);
  Account account{.region = aws.region(), .credentials = aws.credentials_source()};
  // The reads run in parallel; errors are reported in the order of the code below.
  auto subnets = std::async(std::launch::async, [&] { return read_subnets(aws, spec, cluster); });
  auto types = std::async(std::launch::async, [&] { return read_types(aws, names); });
  auto offers = std::async(std::launch::async, [&] { return read_offers(aws, names); });
  auto quotas = std::async(std::launch::async, [&] { return read_quotas(aws, names, markets_of(spec)); });
  auto source = std::async(std::launch::async, [&] { return spec.ssh_from == "me" ? own_source(aws) : spec.ssh_from; });
  auto file_system = std::async(std::launch::async, [&] { return find_file_system(aws, spec, cluster); });
  auto role = std::async(std::launch::async, [&] { return wants_own_role(spec) && has_roles(aws, spec, cluster); });
  if (!spec.elastic_role.empty() && !wants_own_role(spec)) check_profile(aws, spec.elastic_role);
  if (!spec.kms_key.empty()) account.kms_key = read_kms_key(aws, spec.kms_key);
  if (!spec.capacity_reservation.empty()) account.reservation = read_reservation(aws, spec.capacity_reservation);
  read_identity(aws, account);
  read_key(aws, spec, cluster, account);
  account.subnets = subnets.get();
  account.vpc_id = account.subnets.front().vpc_id;
  const Offers offered = offers.get();
  check_offered(aws, names, offered);
  account.types = types.get();
  for (const auto& [type, zone] : offered) account.types[type].zones.insert(zone);
  check_types(account, spec);
  if (account.reservation) check_reservation(account, spec);
  // Head and workers boot the same image, and one with drivers also boots where there is no GPU.
  const auto has_gpus = [&](const std::string& name) { return account.types.at(name).gpus > 0; };
  if (!spec.image.empty()) account.image = find_image(aws, spec, std::ranges::any_of(names, has_gpus));
  account.quotas = quotas.get();
  account.ssh_source = source.get();
  account.file_system = file_system.get();
  account.has_role = role.get();
  account.prices = known_prices(account.region);
  account.tags = spec.tags;
  return account;
}

}  // namespace dtrain::cluster
