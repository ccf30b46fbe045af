#include "bfloat16.hpp"

#include <string_view>

#include "onednn.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace dtrain::backend::cpu {

bool widens_bfloat16(const CpuModel& cpu) {
  if (cpu.has_amx_bf16) return false;
  if (!cpu.has_avx512_bf16) return true;
  return cpu.intel && cpu.family == 6 && cpu.model >= 143;
}

const char* bfloat16_description(const CpuModel& cpu) {
  return cpu.has_avx512_bf16 && widens_bfloat16(cpu) ? ", bfloat16 as float32" : "";
}

CpuModel this_cpu() {
  CpuModel cpu;
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(0, &eax, &ebx, &ecx, &edx);
  cpu.intel = ebx == signature_INTEL_ebx;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  cpu.family = static_cast<int>(eax >> 8 & 0xf);
  cpu.model = static_cast<int>((eax >> 4 & 0xf) | (eax >> 12 & 0xf0));  // the high half is in bits 16 to 19
  cpu.has_avx2_fma = (ecx & bit_FMA) != 0 && uses_instructions(dnnl::cpu_isa::avx2);
#endif
  cpu.has_avx512 = uses_instructions(dnnl::cpu_isa::avx512_core);
  cpu.has_avx512_bf16 = uses_instructions(dnnl::cpu_isa::avx512_core_bf16);
  cpu.has_amx_bf16 = uses_instructions(dnnl::cpu_isa::avx512_core_amx);
  return cpu;
}

}  // namespace dtrain::backend::cpu
