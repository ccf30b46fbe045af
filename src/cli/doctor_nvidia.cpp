#include "doctor_nvidia.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <initializer_list>

namespace dtrain::cli {
namespace {

// Stays loaded: the driver's library starts threads that outlive a dlclose().
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if ((handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) != nullptr) return;
    }
    if (const char* said = ::dlerror()) error_ = said;
  }
  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }
  template <typename Function>
  Function* find(const char* name) const {
    return handle_ ? reinterpret_cast<Function*>(::dlsym(handle_, name)) : nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string error_;
};

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  ..."
std::string kernel_driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return {};
}

void add_gpus(const Library& driver, NvidiaFacts& facts) {
  constexpr int kNameSize = 256;
  const auto count = driver.find<int(int*)>("cuDeviceGetCount");
  const auto get = driver.find<int(int*, int)>("cuDeviceGet");
  const auto name_of = driver.find<int(char*, int, int)>("cuDeviceGetName");
  int number = 0;
  if (!count || !get || !name_of || count(&number) != 0) return;
  for (int i = 0, device = 0; i < number; ++i) {
    std::array<char, kNameSize> name{};
    if (get(&device, i) == 0 && name_of(name.data(), kNameSize, device) == 0) facts.gpus.emplace_back(name.data());
  }
}

void ask_driver(NvidiaFacts& facts) {
  const Library driver({"libcuda.so.1"});
  const auto begin = driver.find<int(unsigned)>("cuInit");
  const auto version = driver.find<int(int*)>("cuDriverGetVersion");
  if (!begin || !version) {
    facts.driver_error = driver ? "libcuda.so.1 is no CUDA driver" : driver.error();
  } else if (const int code = begin(0)) {
    facts.driver_error = fmt::format("the driver does not start: CUDA error {}", code);
  } else {
    version(&facts.cuda);
    add_gpus(driver, facts);
  }
}

int asked_by_pointer(const Library& library, const char* name) {
  const auto ask = library.find<int(int*)>(name);
  int version = 0;
  return ask && ask(&version) == 0 ? version : 0;
}

int asked_by_value(const Library& library, const char* name) {
  const auto ask = library.find<std::size_t()>(name);
  return ask ? static_cast<int>(ask()) : 0;
}

std::string in_thousands(int number, int major) {
  return fmt::format("{}.{}.{}", number / major, number % major / 100, number % 100);
}

}  // namespace

NvidiaFacts read_nvidia() {
  NvidiaFacts facts;
  facts.has_device = std::filesystem::exists("/dev/nvidia0");
  facts.driver = kernel_driver();
  ask_driver(facts);
  facts.runtime =
      asked_by_pointer(Library({"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}), "cudaRuntimeGetVersion");
  facts.cudnn = asked_by_value(Library({"libcudnn.so.9", "libcudnn.so.8"}), "cudnnGetVersion");
  facts.nccl = asked_by_pointer(Library({"libnccl.so.2"}), "ncclGetVersion");
  return facts;
}

std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

// From version 9 on the major number counts ten thousands.
std::string cudnn_version(int number) { return in_thousands(number, number >= 90000 ? 10000 : 1000); }
// From 2.9 on likewise.
std::string nccl_version(int number) { return in_thousands(number, number >= 10000 ? 10000 : 1000); }

}  // namespace dtrain::cli
