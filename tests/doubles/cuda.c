/* Copyright (c) 2026, gpuserve contributors
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * A double of libcuda.so.1: the calls that the health checks make, with CUDA's own signatures (cuda.h), answered from a scenario
 * (double.h). As the real one does, cuInit opens /dev/nvidia-uvm (another path by "value uvm * PATH") and answers 999 if it
 * cannot.
 */
#include "double.h"
#include <fcntl.h>

#define NO_DEVICE 100
#define NOT_SUPPORTED 801
#define UNKNOWN 999

static int ask(const char *function, int gpu, const char **text)
{
    return scenario_call(function, function, gpu, NOT_SUPPORTED, text);
}

static int answer_int(const char *function, int gpu, int *value)
{
    const char *text;
    int code = ask(function, gpu, &text);
    if (!code)
        *value = atoi(text);
    return code;
}

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    const char *text, *path = scenario_find("value", "uvm", -1);
    int code = ask("cuInit", -1, &text);
    if (code && code != NOT_SUPPORTED)
        return code;
    int node = open(path ? path : "/dev/nvidia-uvm", O_RDWR | O_CLOEXEC);
    if (node < 0)
        return UNKNOWN;
    close(node);
    int count = 0;
    answer_int("cuDeviceGetCount", -1, &count);
    return count ? 0 : NO_DEVICE;
}

EXPORT int cuDriverGetVersion(int *version) { return answer_int("cuDriverGetVersion", -1, version); }

EXPORT int cuDeviceGetCount(int *count) { return answer_int("cuDeviceGetCount", -1, count); }

EXPORT int cuDeviceGet(int *device, int index)
{
    const char *text;
    int code = ask("cuDeviceGet", index, &text);
    *device = index;
    return code == NOT_SUPPORTED ? 0 : code;
}

EXPORT int cuDeviceGetName(char *name, int length, int device)
{
    const char *text;
    int code = ask("cuDeviceGetName", device, &text);
    if (!code)
        snprintf(name, (size_t)length, "%s", text);
    return code;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const char *text;
    int code = ask("cuDeviceTotalMem", device, &text);
    if (!code)
        *bytes = strtoull(text, NULL, 0);
    return code;
}

EXPORT int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    memset(uuid, 0, 16);
    uuid[15] = (unsigned char)device;
    return 0;
}

EXPORT int cuDeviceGetPCIBusId(char *pci, int length, int device)
{
    const char *text;
    int code = ask("cuDeviceGetPCIBusId", device, &text);
    if (!code)
        snprintf(pci, (size_t)length, "%s", text);
    return code;
}

/* "MAJOR MINOR"; the attributes 75 and 76 are the parts of the compute capability. */
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    const char *text;
    int parts[2] = {0, 0};
    int code = ask("cuDeviceGetAttribute", device, &text);
    if (!code)
        sscanf(text, "%d %d", &parts[0], &parts[1]);
    *value = parts[attribute == 76];
    return code;
}
