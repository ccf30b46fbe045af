# -DDTRAIN_CUDA=AUTO|ON|OFF: whether src/backend/cuda/gpu is built. AUTO builds it where nvcc and cuDNN's headers are.
# Nothing of NVIDIA's is linked but the static runtime; the driver and cuDNN are opened when they are first used.
set(DTRAIN_CUDA AUTO CACHE STRING "Train on GPUs: AUTO (where nvcc and cuDNN's headers are), ON or OFF")
set(DTRAIN_HAS_CUDA OFF)
string(TOUPPER "${DTRAIN_CUDA}" wish)
if(wish MATCHES "^(1|ON|YES|TRUE|Y)$")
  set(wish ON)
elseif(wish MATCHES "^(0|OFF|NO|FALSE|N)$")
  set(wish OFF)
elseif(NOT wish STREQUAL AUTO)
  message(FATAL_ERROR "-DDTRAIN_CUDA=${DTRAIN_CUDA}: must be AUTO, ON or OFF.")
endif()
if(NOT wish STREQUAL OFF)
  find_program(DTRAIN_NVCC nvcc HINTS ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  cmake_path(GET DTRAIN_NVCC PARENT_PATH root)
  cmake_path(GET root PARENT_PATH root)
  find_path(DTRAIN_CUDA_INCLUDE cuda_runtime.h HINTS ${root}/include)
  find_path(DTRAIN_CUDNN_INCLUDE cudnn.h HINTS ${root}/include ${root}/../cudnn/include /usr/include/x86_64-linux-gnu)
  find_library(DTRAIN_CUDART cudart_static HINTS ${root}/lib64 ${root}/lib)
  set(missing)
  foreach(part NVCC CUDA_INCLUDE CUDNN_INCLUDE CUDART)
    if(NOT DTRAIN_${part})
      list(APPEND missing ${part})
    endif()
  endforeach()
  if(NOT missing)
    file(STRINGS ${DTRAIN_CUDA_INCLUDE}/cuda_runtime_api.h runtime REGEX "define CUDART_VERSION +13")
    file(STRINGS ${DTRAIN_CUDNN_INCLUDE}/cudnn_version.h cudnn REGEX "define CUDNN_MAJOR +9")
    if(NOT runtime)
      list(APPEND missing "CUDA 13 (another version is in ${DTRAIN_CUDA_INCLUDE})")
    endif()
    if(NOT cudnn)
      list(APPEND missing "cuDNN 9 (another version is in ${DTRAIN_CUDNN_INCLUDE})")
    endif()
  endif()
  if(NOT missing)
    set(DTRAIN_HAS_CUDA ON)
  elseif(wish STREQUAL ON)
    message(FATAL_ERROR "-DDTRAIN_CUDA=ON needs the CUDA toolkit (nvcc, headers, static runtime) of version 13 and "
                        "cuDNN 9's headers; not found: ${missing}. CUDA_PATH says where the toolkit is; "
                        "packaging/cuda-toolkit.sh makes one.")
  endif()
endif()
message(STATUS "GPUs: ${DTRAIN_HAS_CUDA}")

# Compiles a .cu into an object file and adds it to a target: dtrain_cuda_source(TARGET SOURCE [NATIVE]). Ampere and
# Hopper, and what later chips compile themselves. NATIVE: with what only Hopper has; such code stands between
# #if on __CUDA_ARCH_FEAT_SM90_ALL.
function(dtrain_cuda_source target source)
  set(hopper 90)
  if("NATIVE" IN_LIST ARGN)
    set(hopper 90a)
  endif()
  cmake_path(GET source STEM name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${DTRAIN_NVCC} -std=c++20 -O3 --expt-relaxed-constexpr
      -gencode arch=compute_80,code=sm_80 -gencode arch=compute_${hopper},code=sm_${hopper} -gencode arch=compute_90,code=compute_90
      -I${CMAKE_SOURCE_DIR}/include -MD -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${source}
    DEPFILE ${object}.d
    VERBATIM)
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  target_sources(${target} PRIVATE ${object})
  target_include_directories(${target} SYSTEM PRIVATE ${DTRAIN_CUDA_INCLUDE} ${DTRAIN_CUDNN_INCLUDE})
  target_link_libraries(${target} PRIVATE ${DTRAIN_CUDART} ${CMAKE_DL_LIBS} Threads::Threads rt)
endfunction()
